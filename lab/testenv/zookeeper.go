package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const zookeeperJar = "/usr/share/java/zookeeper.jar" // its manifest lists its dependencies

// zookeeperConfig has short ticks, so that sessions may be as short as the tests' TTLs, and a high
// maximum for the longest ones. It is durable, since servers are killed.
const zookeeperConfig = `tickTime=500
initLimit=40
syncLimit=10
dataDir=%s
clientPort=%s
clientPortAddress=127.0.0.1
minSessionTimeout=1000
maxSessionTimeout=172800000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr
`

// keeper is one server of the ensemble.
type keeper struct {
	address string
	log     string
	restart func() error
}

// startZooKeeper starts three servers from Debian's packages, which it installs if they are
// missing. Tests can have the leader killed and restarted.
func startZooKeeper(ctx context.Context, e *environment) error {
	java, err := e.zookeeperPrograms(ctx)
	if err != nil {
		return err
	}
	var all [3]keeper
	var ensemble strings.Builder
	for i := range all {
		var ports [3]string
		for j := range ports {
			if ports[j], err = e.free(); err != nil {
				return err
			}
		}
		all[i].address = "127.0.0.1:" + ports[0]
		fmt.Fprintf(&ensemble, "server.%d=127.0.0.1:%s:%s\n", i+1, ports[1], ports[2])
	}
	var addresses []string
	for i := range all {
		if err := all[i].start(e, java, i+1, ensemble.String()); err != nil {
			return err
		}
		addresses = append(addresses, all[i].address)
	}
	if err := serve(ctx, all[:]); err != nil {
		return err
	}
	at, err := e.serve(func(ctx context.Context) error { return killLeader(ctx, all[:]) })
	if err != nil {
		return err
	}
	e.set("CONCORD_ZOOKEEPER", strings.Join(addresses, ","))
	e.set("CONCORD_ZOOKEEPER_RESTART", at)
	return nil
}

func (k *keeper) start(e *environment, java string, id int, ensemble string) (err error) {
	dir := filepath.Join(e.temp, fmt.Sprint("zookeeper-", id))
	data, config := filepath.Join(dir, "data"), filepath.Join(dir, "zoo.cfg")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, "myid"), fmt.Append(nil, id), 0o600); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(k.address)
	if err := os.WriteFile(config, fmt.Appendf(nil, zookeeperConfig+ensemble, data, port),
		0o600); err != nil {
		return err
	}
	k.log, k.restart, err = e.spawn(fmt.Sprint("zookeeper-", id), java, "-Xmx128m",
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dzookeeper.jmx.log4j.disable=true", "-cp",
		zookeeperJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	return err
}

// killLeader kills the leader and starts it again; meanwhile the others elect another one.
func killLeader(ctx context.Context, all []keeper) error {
	for _, k := range all {
		if mode(ctx, k) == "leader" {
			if err := k.restart(); err != nil {
				return err
			}
			return serve(ctx, all)
		}
	}
	return fmt.Errorf("no leader\n%s", tail(all[0].log))
}

func (e *environment) zookeeperPrograms(ctx context.Context) (java string, err error) {
	java, err = exec.LookPath("java")
	if _, missing := os.Stat(zookeeperJar); err == nil && missing == nil {
		return java, nil
	}
	// The package zookeeper would start a server.
	if err := e.install(ctx, "libzookeeper-java", "default-jre-headless"); err != nil {
		return "", err
	}
	if _, err := os.Stat(zookeeperJar); err != nil {
		return "", err
	}
	return exec.LookPath("java")
}

// serve waits until every server is a leader or a follower.
func serve(ctx context.Context, all []keeper) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for _, k := range all {
		for mode(ctx, k) == "" {
			select {
			case <-ctx.Done():
				return fmt.Errorf("not ready: %w\n%s", ctx.Err(), tail(k.log))
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return nil
}

// mode returns the mode reported by a server, or "".
func mode(ctx context.Context, k keeper) string {
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", k.address)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return ""
	}
	var answer [1024]byte
	n, _ := conn.Read(answer[:])
	_, rest, _ := strings.Cut(string(answer[:n]), "Mode: ")
	is, _, _ := strings.Cut(rest, "\n")
	return is
}
