//go:build linux

package healtest_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/concord-go/concord/lab/netem"
)

// etcdEnv is the environment variable with the path of the program.
const etcdEnv = "CONCORD_ETCD_BIN"

// etcdServer is an etcd server in its own network namespace.
type etcdServer struct {
	t       *testing.T
	net     *netem.Network
	node    int
	dir     string
	address string
	cmd     *exec.Cmd
}

func startEtcd(t *testing.T, n *netem.Network, node int, dir string) *etcdServer {
	t.Helper()
	e := &etcdServer{t: t, net: n, node: node, dir: dir, address: n.Addr(node) + ":2379"}
	t.Cleanup(e.kill)
	e.start()
	return e
}

// start starts the server on its existing data, and waits until it listens.
func (e *etcdServer) start() {
	e.t.Helper()
	client, peers := "http://"+e.address, "http://"+e.net.Addr(e.node)+":2380"
	e.cmd = exec.Command(os.Getenv(etcdEnv), "--name", "m0", "--data-dir",
		filepath.Join(e.dir, "etcd"), "--listen-client-urls", client, "--advertise-client-urls",
		client, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
		"--initial-cluster", "m0="+peers, "--log-level", "warn")
	if err := e.net.Start(e.node, e.cmd); err != nil {
		e.t.Fatalf("etcd: %v", err)
	}
	for end := time.Now().Add(patience()); ; time.Sleep(poll) {
		err := e.net.Do(e.node, func() error {
			c, err := net.DialTimeout("tcp4", e.address, time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err
		})
		if err == nil {
			return
		}
		if time.Now().After(end) {
			e.t.Fatalf("etcd: %v", err)
		}
	}
}

// kill kills the server with SIGKILL.
func (e *etcdServer) kill() {
	if e.cmd != nil && e.cmd.Process != nil {
		_ = e.cmd.Process.Kill()
		_ = e.cmd.Wait()
	}
}
