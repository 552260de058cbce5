package netem

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// Network is a set of nodes and the relay between them. It ends with the test.
type Network struct {
	nodes []*node
	wires map[[2]int]*wire
	done  chan struct{}
	work  sync.WaitGroup
}

// maxNodes is the capacity of one subnet.
const maxNodes = 200

// Possible returns why this machine cannot run a network, or nil if it can.
func Possible() error { return possible() }

// New creates a network of n nodes. If the machine cannot run one, New skips the test, or fails it
// with CI=true.
func New(t testing.TB, n int) *Network {
	t.Helper()
	if n < 1 || n > maxNodes {
		t.Fatalf("netem: %d nodes, must be 1 to %d", n, maxNodes)
	}
	if err := possible(); err != nil {
		message := fmt.Sprintf("NOT TESTED: netem needs root on Linux with /dev/net/tun: %v", err)
		if os.Getenv("CI") == "true" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	net := &Network{wires: map[[2]int]*wire{}, done: make(chan struct{})}
	t.Cleanup(net.close)
	for i := range n {
		nd, err := newNode(i)
		if err != nil {
			t.Fatalf("netem: node %d: %v", i, err)
		}
		net.nodes = append(net.nodes, nd)
	}
	for from := range n {
		for to := range n {
			w := newWire(net.nodes[to].deliver)
			net.wires[[2]int{from, to}] = w
			net.work.Go(func() { w.run(net.done) })
		}
	}
	for from, nd := range net.nodes {
		net.work.Go(func() { net.relay(from, nd) })
	}
	return net
}

// Addr returns the IPv4 address of a node.
func (n *Network) Addr(i int) string { return n.nodes[i].addr.String() }

// Set changes one direction of the link between two nodes. Packets in flight are not affected.
func (n *Network) Set(from, to int, l Link) { n.wires[[2]int{from, to}].set(l) }

// SetAll changes every direction.
func (n *Network) SetAll(l Link) {
	for _, w := range n.wires {
		w.set(l)
	}
}

// Isolate cuts a node off from all others, both ways.
func (n *Network) Isolate(i int) {
	for link, w := range n.wires {
		if (link[0] == i) != (link[1] == i) {
			w.set(Link{Cut: true})
		}
	}
}

// Heal removes the faults of every link.
func (n *Network) Heal() { n.SetAll(Link{}) }

// Do runs f in the namespace of a node. Sockets created by f itself belong to the namespace
// permanently. Goroutines started by f, and name lookups, do not run there.
func (n *Network) Do(i int, f func() error) error { return n.nodes[i].do(f) }

// Start starts a process in the namespace of a node.
func (n *Network) Start(i int, cmd *exec.Cmd) error { return n.nodes[i].do(cmd.Start) }

// relay forwards the packets of a node until its device is closed.
func (n *Network) relay(from int, nd *node) {
	buffer := make([]byte, 1<<16)
	for {
		size, err := nd.tun.Read(buffer)
		if err != nil {
			return
		}
		if to, ok := n.receiver(buffer[:size]); ok {
			n.wires[[2]int{from, to}].take(append([]byte(nil), buffer[:size]...))
		}
	}
}

// receiver returns the node of an IPv4 packet's destination.
func (n *Network) receiver(packet []byte) (int, bool) {
	if len(packet) < ipHeader || packet[0]>>4 != 4 {
		return 0, false
	}
	for i, nd := range n.nodes {
		if [4]byte(packet[16:20]) == nd.addr.As4() {
			return i, true
		}
	}
	return 0, false
}

func (n *Network) close() {
	close(n.done)
	for _, nd := range n.nodes {
		nd.close()
	}
	n.work.Wait()
}
