package guard

import (
	"container/list"
	"net"
	"sync"
)

const (
	// maxConns bounds the connections opened by other processes; each peer needs one.
	maxConns = 4096
	// maxFresh bounds those of them on which no peer has proven its address.
	maxFresh = 256
)

// conns are the connections opened by other processes. When too many are unproven, the oldest of
// these is closed: a legitimate peer proves itself within milliseconds.
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

// conn is one connection. Close may be called repeatedly.
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
		_ = oldest.Close() // it is dropped, whatever the error
	}
	return c
}

// proven exempts the connection from being closed in favor of others.
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
