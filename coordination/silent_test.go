package coordination_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/silence"
)

// wired is a store whose calls go over connections, each of which carries one call at a time: those
// of a pool, or a single one.
type wired struct {
	memory.Store
	links    silence.Links
	connects time.Duration // of a new connection
	calls    chan struct{} // under way

	mu struct {
		sync.Mutex
		idle []*wire
		all  []*wire
	}
}

// wire is a connection.
type wire struct {
	net.Conn
	server net.Conn
	silent atomic.Bool // the server does not answer any more
}

func newWired(t *testing.T, calls int, connects time.Duration) *wired {
	w := &wired{Store: memory.New(), links: silence.Links{Pool: calls > 1}, connects: connects,
		calls: make(chan struct{}, calls)}
	t.Cleanup(func() {
		for _, c := range w.mu.all {
			c.close()
		}
	})
	return w
}

// silence lets the present connections fall silent.
func (w *wired) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.mu.all {
		c.silent.Store(true)
	}
}

// connection returns an idle connection, or makes one.
func (w *wired) connection() *wire {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.mu.idle); n > 0 {
		c := w.mu.idle[n-1]
		w.mu.idle = w.mu.idle[:n-1]
		return c
	}
	w.mu.Unlock()
	time.Sleep(w.connects)
	w.mu.Lock()
	near, far := net.Pipe()
	c := &wire{Conn: w.links.Add(near), server: far}
	w.mu.all = append(w.mu.all, c)
	go c.serve()
	return c
}

func (c *wire) serve() {
	for p := make([]byte, 1); ; {
		if _, err := c.server.Read(p); err != nil {
			return
		}
		if c.silent.Load() {
			continue
		}
		if _, err := c.server.Write(p); err != nil {
			return
		}
	}
}

func (c *wire) close() { _, _ = c.Close(), c.server.Close() }

// ask returns when the server has answered. Connections are made also when ctx has ended. That of a
// call in a pool is closed then, as the clients of stores do.
func (w *wired) ask(ctx context.Context) error {
	defer w.links.Watch(ctx)()
	select {
	case w.calls <- struct{}{}:
		defer func() { <-w.calls }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		c := w.connection()
		if _, err := c.Write([]byte("?")); err != nil { // it was closed while it was idle
			c.close()
			continue
		}
		if w.links.Pool {
			defer context.AfterFunc(ctx, c.close)()
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			c.close()
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.mu.idle = append(w.mu.idle, c)
		return ctx.Err()
	}
}

func (w *wired) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	if err := w.ask(ctx); err != nil {
		return leasestore.Record{}, "", err
	}
	return w.Store.Load(ctx, name)
}

func (w *wired) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := w.ask(ctx); err != nil {
		return "", err
	}
	return w.Store.Swap(ctx, name, old, next)
}

// TestSilent_ASlowConnectionCostsNoLease lets the connections fall silent again and again, at any
// time between two renewals. New ones take a fifth of the TTL.
func TestSilent_ASlowConnectionCostsNoLease(t *testing.T) {
	const leases, silences = 20, 100
	for _, calls := range []int{1, 8} {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newWired(t, calls, 1600*time.Millisecond)
				s, err := coordination.Open(store, coordination.Config{})
				if err != nil {
					t.Fatal(err)
				}
				defer faulty.Crash(s)
				for i := range leases {
					if _, err := s.Lease(fmt.Sprint(i)).Acquire(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				for i := range silences {
					store.silence()
					time.Sleep(s.TTL() + time.Duration(i)*s.TTL()/silences)
					if st := s.Status(); st.Held != leases {
						t.Fatalf("silence %d: %d of %d leases are held, lost %v", i, st.Held,
							leases, st.Lost)
					}
				}
			})
		})
	}
}
