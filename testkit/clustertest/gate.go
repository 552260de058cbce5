package clustertest

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/concord-go/concord/internal/ports"
)

// Gate is a TCP proxy in front of a provider's server. A shut gate refuses and cuts all
// connections. The server continues to run while no member reaches it. This is harder on members
// than a stopped server, since the server expires the data it holds for them. A gate can also drop
// all that is sent on connections, which stay open.
type Gate struct {
	address, target string
	all             sync.WaitGroup

	mu struct {
		sync.Mutex
		listener net.Listener // nil while shut
		pairs    map[*pair]bool
	}
}

// pair is a connection of a member, and the one to the server that belongs to it.
type pair struct {
	near, far net.Conn
	silent    atomic.Bool
}

func (p *pair) close() { _, _ = p.near.Close(), p.far.Close() }

// copy copies until one side closes.
func (p *pair) copy(to, from net.Conn) {
	defer p.close()
	for data := make([]byte, 32<<10); ; {
		n, err := from.Read(data)
		if err != nil {
			return
		}
		if p.silent.Load() {
			continue
		}
		if _, err := to.Write(data[:n]); err != nil {
			return
		}
	}
}

// NewGate returns an open gate to a server at a host:port. The gate is closed at the end of the
// test.
func NewGate(t testing.TB, target string) *Gate {
	t.Helper()
	// While the gate is shut, no connection may be given its port.
	g := &Gate{address: fmt.Sprint("127.0.0.1:", ports.Free(t, 1)[0]), target: target}
	g.mu.pairs = map[*pair]bool{}
	g.Open(t)
	t.Cleanup(func() { g.Shut(t); g.all.Wait() })
	return g
}

// Address returns the host:port at which members reach the server. It stays the same.
func (g *Gate) Address() string { return g.address }

// Server returns a value for Config.Server.
func (g *Gate) Server() *Server {
	return &Server{Name: g.address, Stop: g.Shut, Start: g.Open, Silence: g.Silence}
}

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
	g.mu.listener = l
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
	for p := range g.mu.pairs {
		p.close()
	}
}

// Silence returns a function that drops all that is sent on the present connections, which stay
// open. New ones work.
func (g *Gate) Silence(testing.TB) func() {
	g.mu.Lock()
	defer g.mu.Unlock()
	present := slices.Collect(maps.Keys(g.mu.pairs))
	return func() {
		for _, p := range present {
			p.silent.Store(true)
		}
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
	p := &pair{near: c, far: s}
	if !g.hold(through, p) {
		return
	}
	defer g.drop(p)
	var both sync.WaitGroup
	both.Go(func() { p.copy(c, s) })
	both.Go(func() { p.copy(s, c) })
	both.Wait()
}

// hold reports whether the gate that a connection came through is still open.
func (g *Gate) hold(through net.Listener, p *pair) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.listener != through {
		return false
	}
	g.mu.pairs[p] = true
	return true
}

func (g *Gate) drop(p *pair) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.pairs, p)
}
