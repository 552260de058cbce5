package clustertest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Gate is a TCP proxy in front of a provider's server. A shut gate refuses and cuts all
// connections. The server continues to run while no member reaches it. This is harder on members
// than a stopped server, since the server expires the data it holds for them.
type Gate struct {
	address, target string
	all             sync.WaitGroup

	mu struct {
		sync.Mutex
		listener net.Listener // nil while shut
		conns    map[net.Conn]bool
	}
}

// NewGate returns an open gate to a server at a host:port. The gate is closed at the end of the
// test.
func NewGate(t testing.TB, target string) *Gate {
	t.Helper()
	g := &Gate{address: "127.0.0.1:0", target: target}
	g.mu.conns = map[net.Conn]bool{}
	g.Open(t)
	t.Cleanup(func() { g.Shut(t); g.all.Wait() })
	return g
}

// Address returns the host:port at which members reach the server. It stays the same.
func (g *Gate) Address() string { return g.address }

// Server returns a value for Config.Server.
func (g *Gate) Server() *Server { return &Server{Name: g.address, Stop: g.Shut, Start: g.Open} }

// Open lets connections through.
func (g *Gate) Open(t testing.TB) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.listener != nil {
		return
	}
	l, err := net.Listen("tcp", g.address)
	if err != nil {
		t.Fatalf("gate to %s: %v", g.target, err)
	}
	g.mu.listener, g.address = l, l.Addr().String()
	g.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // shut
			}
			g.all.Go(func() { g.pass(l, c) })
		}
	})
}

// Shut cuts all connections.
func (g *Gate) Shut(testing.TB) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.listener != nil {
		_ = g.mu.listener.Close()
		g.mu.listener = nil
	}
	for c := range g.mu.conns {
		_ = c.Close()
	}
}

// pass copies data in both directions until one side closes.
func (g *Gate) pass(through net.Listener, c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer s.Close()
	if !g.hold(through, c, s) {
		return
	}
	defer g.drop(c, s)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_, _ = c.Close(), s.Close()
		})
	}
	both.Wait()
}

// hold reports whether the gate that a connection came through is still open.
func (g *Gate) hold(through net.Listener, conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.listener != through {
		return false
	}
	for _, c := range conns {
		g.mu.conns[c] = true
	}
	return true
}

func (g *Gate) drop(conns ...net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range conns {
		delete(g.mu.conns, c)
	}
}
