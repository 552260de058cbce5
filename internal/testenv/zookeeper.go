package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const zookeeperJar = "/usr/share/java/zookeeper.jar" // its manifest names all that it needs

// zookeeperConfig has short ticks, so that sessions may be as short as the tests' TTLs, and long ones for
// their longest. It is durable, as a killed server has to be.
const zookeeperConfig = `tickTime=500
dataDir=%s
clientPort=%s
clientPortAddress=127.0.0.1
minSessionTimeout=1000
maxSessionTimeout=172800000
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=srvr
`

// startZooKeeper starts one server, of Debian's packages, which are installed if they are not there.
func startZooKeeper(ctx context.Context, e *environment) error {
	java, err := e.zookeeperPrograms(ctx)
	if err != nil {
		return err
	}
	port, err := e.free()
	if err != nil {
		return err
	}
	dir := filepath.Join(e.temp, "zookeeper")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	config := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, zookeeperConfig, filepath.Join(dir, "data"), port), 0o600); err != nil {
		return err
	}
	log, restart, err := e.spawn("zookeeper", java, "-Xmx256m", "-XX:+UseSerialGC", "-Dzookeeper.jmx.log4j.disable=true",
		"-cp", zookeeperJar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", config)
	if err != nil {
		return err
	}
	address := "127.0.0.1:" + port
	if err := serves(ctx, address, log); err != nil {
		return err
	}
	at, err := e.serve(func(ctx context.Context) error { return errors.Join(restart(), serves(ctx, address, log)) })
	if err != nil {
		return err
	}
	e.set("CONCORD_ZOOKEEPER", address)
	e.set("CONCORD_ZOOKEEPER_RESTART", at)
	return nil
}

func (e *environment) zookeeperPrograms(ctx context.Context) (java string, err error) {
	java, err = exec.LookPath("java")
	if _, missing := os.Stat(zookeeperJar); err == nil && missing == nil {
		return java, nil
	}
	if err := e.install(ctx, "libzookeeper-java", "default-jre-headless"); err != nil { // not zookeeper, which has a server run
		return "", err
	}
	if _, err := os.Stat(zookeeperJar); err != nil {
		return "", err
	}
	return exec.LookPath("java")
}

// serves waits until a ZooKeeper answers that it serves clients.
func serves(ctx context.Context, address, log string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		answer, err := askZooKeeper(ctx, address)
		if strings.Contains(answer, "Mode: ") {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready: %w: %s\n%s", err, answer, tail(log))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func askZooKeeper(ctx context.Context, address string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * time.Second))
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return "", err
	}
	var answer [1024]byte
	n, err := conn.Read(answer[:])
	return string(answer[:n]), err
}
