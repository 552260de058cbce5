package guard

import (
	"container/list"
	"net"
	"sync"
)

const (
	// maxConns bounds the connections that others have made; each peer needs one.
	maxConns = 4096
	// maxFresh bounds those among them on which nobody has proven who it is.
	maxFresh = 256
)

// conns are the connections that others have made. When there are too many on which nobody has
// proven anything, the oldest of these is closed: a peer proves itself within milliseconds.
type conns struct {
	mu struct {
		sync.Mutex
		all   int
		fresh *list.List // of *conn, oldest first
	}
}

func newConns() *conns {
	c := &conns{}
	c.mu.fresh = list.New()
	return c
}

// conn is one connection. Close may be called often.
type conn struct {
	net.Conn
	of   *conns
	once sync.Once
	item *list.Element // nil once it is proven or closed; guarded by of.mu
}

func (cs *conns) add(raw net.Conn) *conn {
	c := &conn{Conn: raw, of: cs}
	cs.mu.Lock()
	cs.mu.all++
	c.item = cs.mu.fresh.PushBack(c)
	var oldest *conn
	if cs.mu.fresh.Len() > maxFresh || cs.mu.all > maxConns {
		oldest = cs.mu.fresh.Front().Value.(*conn)
	}
	cs.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close() // it is to go, whatever it says
	}
	return c
}

// proven takes the connection out of those that may be closed for others.
func (c *conn) proven() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.retireLocked()
}

func (c *conn) retireLocked() {
	if c.item != nil {
		c.of.mu.fresh.Remove(c.item)
		c.item = nil
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		c.of.mu.all--
		c.retireLocked()
	})
	return c.Conn.Close()
}
