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
	// Pool says that each connection carries one call at a time. If one has fallen silent, those
	// that were idle meanwhile are closed: the next call would take one of them. The silent one has
	// twice the time, since a late answer is useful and keeps nobody waiting.
	Pool bool

	mu struct {
		sync.Mutex
		conns map[*conn]struct{}
	}
}

// conn is a connection. Links.mu guards the times.
type conn struct {
	net.Conn
	links         *Links
	asked         time.Time // of the first write after the last read; zero: nothing is awaited
	wrote, readAt time.Time
}

// DialContext opens a connection that belongs to the links.
func (l *Links) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return l.Add(raw), nil
}

// Add returns the connection, which belongs to the links from now on.
func (l *Links) Add(raw net.Conn) net.Conn {
	c := &conn{Conn: raw, links: l, readAt: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.conns == nil {
		l.mu.conns = map[*conn]struct{}{}
	}
	l.mu.conns[c] = struct{}{}
	return c
}

// Read implements net.Conn, as Write and Close do.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.links.mu.Lock()
	defer c.links.mu.Unlock()
	if n > 0 {
		c.asked, c.readAt = time.Time{}, time.Now()
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	c.links.mu.Lock()
	c.wrote = time.Now()
	if c.asked.IsZero() {
		c.asked = c.wrote
	}
	c.links.mu.Unlock()
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.links.mu.Lock()
	delete(c.links.mu.conns, c)
	c.links.mu.Unlock()
	return c.Conn.Close()
}

// leave closes silent connections for a call that began then and has had no answer for within:
// those on which something was sent since, and on which an answer has been due for that long. The
// time in which the connection was made does not count, nor does that of calls on others. leave
// returns when the next connection may be silent.
func (l *Links) leave(begun time.Time, within time.Duration) (next time.Duration) {
	due := within
	if l.Pool {
		due = 2 * within
	}
	next = within
	var silent, idle []*conn
	var quiet time.Time // since when a connection has been silent
	l.mu.Lock()
	for c := range l.mu.conns {
		since := c.asked
		if since.Before(begun) {
			since = begun
		}
		waited := time.Since(since)
		switch {
		case c.asked.IsZero():
			idle = append(idle, c)
			continue
		case c.wrote.Before(begun): // it belongs to another call
			continue
		case waited >= due:
			silent = append(silent, c)
		case waited >= within:
			next = min(next, due-waited)
		default:
			next = min(next, within-waited)
		}
		if waited >= within && (quiet.IsZero() || since.Before(quiet)) {
			quiet = since
		}
	}
	for _, c := range idle {
		if l.Pool && c.readAt.Before(quiet) {
			silent = append(silent, c)
		}
	}
	l.mu.Unlock()
	for _, c := range silent {
		_ = c.Conn.Close() // the client closes c when its next use fails
	}
	return next
}

// Watch closes silent connections as long as a call that begins now is not answered within its
// time: that of Patiently, else most of the time until the deadline of ctx, but not less than a
// session with the default TTL waits. A caller that gives up sooner has learnt nothing.
func (l *Links) Watch(ctx context.Context) (answered func()) {
	begun := time.Now()
	within, ok := ctx.Value(patience{}).(time.Duration)
	if end, bounded := ctx.Deadline(); !ok && bounded {
		within, ok = max(time.Until(end)*most/of, least), true
	}
	if !ok || l == nil {
		return func() {}
	}
	w := &watch{}
	w.Lock()
	defer w.Unlock()
	w.timer = time.AfterFunc(within, func() {
		next := l.leave(begun, within)
		w.Lock()
		defer w.Unlock()
		if !w.answered {
			w.timer.Reset(next)
		}
	})
	return w.end
}

// watch is the timer of a call.
type watch struct {
	sync.Mutex
	timer    *time.Timer
	answered bool
}

func (w *watch) end() {
	w.Lock()
	defer w.Unlock()
	w.answered = true
	w.timer.Stop()
}

type patience struct{}

const (
	most, of = 15, 16              // of the time of a call
	least    = 9 * time.Second / 4 // that of Patiently, with the default TTL
)

// Patiently returns a context for a call of a session with that TTL, which has a timeout: that of
// the context, or that of a caller, may be another. A renewal may wait for its answer as long as
// its tenure lasts, which is too long on a silent connection. A call that takes a quarter of the
// TTL is only slow.
func Patiently(ctx context.Context, ttl, timeout time.Duration) context.Context {
	return context.WithValue(ctx, patience{},
		max(min(ttl*9/32, timeout*most/of), time.Millisecond))
}
