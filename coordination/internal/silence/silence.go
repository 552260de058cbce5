// Package silence closes connections of the clients of stores that have fallen silent: they are
// open, but nothing comes back, since the server stands still or something between has forgotten
// them. The clients notice that too late for a session with the default TTL.
package silence

import (
	"context"
	"net"
	"sync"
	"time"
)

// Links are the connections of a client. The zero value has none. A nil *Links watches nothing.
type Links struct {
	// Pool says that each connection carries one call at a time. If one has fallen silent, the idle
	// ones are closed too: the next call would take one of them.
	Pool bool

	mu struct {
		sync.Mutex
		conns map[*conn]struct{}
	}
}

// conn is a connection and when it was last used in each direction; Links.mu guards the times.
type conn struct {
	net.Conn
	links         *Links
	wrote, readAt time.Time
}

// DialContext opens a connection that belongs to the links.
func (l *Links) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, links: l, readAt: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.conns == nil {
		l.mu.conns = map[*conn]struct{}{}
	}
	l.mu.conns[c] = struct{}{}
	return c, nil
}

// Read implements net.Conn, as Write and Close do.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	if n > 0 {
		c.readAt = time.Now()
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.links.mu.Lock()
	c.wrote = time.Now()
	c.links.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.links.mu.Lock()
	delete(c.links.mu.conns, c)
	c.links.mu.Unlock()
	return c.Conn.Close()
}

// leave closes the connections on which something was sent since a call began, and nothing has
// come back.
func (l *Links) leave(begun time.Time) {
	l.mu.Lock()
	var silent, idle []*conn
	for c := range l.mu.conns {
		switch {
		case !c.readAt.Before(begun):
		case c.wrote.Before(begun):
			idle = append(idle, c)
		default:
			silent = append(silent, c)
		}
	}
	l.mu.Unlock()
	if l.Pool && len(silent) > 0 {
		silent = append(silent, idle...)
	}
	for _, c := range silent {
		_ = c.Conn.Close() // the client closes c when its next use fails
	}
}

// Watch closes silent connections if a call that begins now is not answered for as long as a call
// may take: the time of Patiently, or most of that until the deadline of ctx.
func (l *Links) Watch(ctx context.Context) (answered func()) {
	begun := time.Now()
	within, ok := ctx.Value(patience{}).(time.Duration)
	if end, bounded := ctx.Deadline(); !ok && bounded {
		within, ok = time.Until(end)*15/16, true
	}
	if !ok || l == nil {
		return func() {}
	}
	timer := time.AfterFunc(within, func() { l.leave(begun) })
	return func() { timer.Stop() }
}

type patience struct{}

// Patiently returns a context for the calls of a write of a record with that TTL. A renewal may
// wait for its answer as long as its tenure lasts, which is too long on a silent connection. A call
// that takes a quarter of the TTL is only slow.
func Patiently(ctx context.Context, ttl time.Duration) context.Context {
	if ttl <= 0 {
		return ctx
	}
	within := ttl * 9 / 32
	if end, bounded := ctx.Deadline(); bounded {
		within = min(within, time.Until(end)*15/16)
	}
	return context.WithValue(ctx, patience{}, within)
}
