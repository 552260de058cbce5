package guard

import (
	"container/list"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxConns bounds the connections opened by other processes; each peer needs one.
	maxConns = 4096
	// maxFresh bounds those of them on which no peer has proven its address.
	maxFresh = 256
	// maxStrange bounds those of peers that are not members.
	maxStrange = 1024
	// maxPerPeer bounds those of one peer. A member has several while it finds out that its network
	// was cut.
	maxPerPeer = 16
	// maxHeld bounds the bytes that have arrived on a connection since its last complete message,
	// and maxHeldByAll those of all such connections, unless their peer is a member.
	maxHeld      = 1 << 20
	maxHeldByAll = 64 << 20
)

// conns are the connections opened by other processes. When there are too many of a sort, the
// oldest one of that sort is closed: a legitimate peer proves itself within milliseconds, and
// connects again if it must.
type conns struct {
	known  func(address string) bool // whether a member or lost member has an address
	refuse func(*conn, error)        // reports a connection that is closed for what it holds
	held   atomic.Int64              // bytes, of peers that are not members

	mu struct {
		sync.Mutex
		open    map[*conn]struct{}
		fresh   *list.List            // of *conn without a proven peer, oldest first
		strange *list.List            // of *conn of peers that were no members when they came
		peers   map[string]*list.List // of *conn, by the address of the peer
	}
}

func newConns(known func(address string) bool, refuse func(*conn, error)) *conns {
	c := &conns{known: known, refuse: refuse}
	c.mu.fresh, c.mu.strange = list.New(), list.New()
	c.mu.peers, c.mu.open = map[string]*list.List{}, map[*conn]struct{}{}
	return c
}

// conn is one connection. Close may be called repeatedly.
type conn struct {
	net.Conn
	of   *conns
	once sync.Once

	trusted atomic.Bool  // the peer is a member: it may hold memory
	held    atomic.Int64 // bytes since the last complete message
	streams atomic.Int32
	idle    *time.Timer // closes the connection until a stream has been introduced

	// Guarded by of.mu.
	closed bool
	peer   string                       // its proven address; "" before
	in     map[*list.List]*list.Element // the lists that hold it
}

var errMany = errors.New("guard: too many connections of its kind; this is the oldest one")

// add adds a connection, which is closed if no stream is introduced on it within a time.
func (cs *conns) add(raw net.Conn, within time.Duration) *conn {
	c := &conn{Conn: raw, of: cs, in: map[*list.List]*list.Element{}}
	cs.mu.Lock()
	c.idle = time.AfterFunc(within, func() { _ = c.Close() }) // it is dropped, whatever the error
	cs.mu.open[c] = struct{}{}
	c.enterLocked(cs.mu.fresh)
	var oldest *conn
	if cs.mu.fresh.Len() > maxFresh || len(cs.mu.open) > maxConns {
		oldest = front(cs.mu.fresh)
	}
	cs.mu.Unlock()
	if oldest != nil {
		cs.refuse(oldest, errMany)
		_ = oldest.Close() // it is dropped, whatever the error
	}
	return c
}

func front(l *list.List) *conn { return l.Front().Value.(*conn) }

func (c *conn) enterLocked(l *list.List) { c.in[l] = l.PushBack(c) }

func (c *conn) leaveLocked(l *list.List) {
	if item, ok := c.in[l]; ok {
		l.Remove(item)
		delete(c.in, l)
	}
}

// proven records the address of the peer of the connection. It closes the oldest connection of this
// peer, or of all strangers, if there are too many. A connection counts for the first address that
// was proven on it.
func (c *conn) proven(address string) {
	for _, old := range c.of.prove(c, address, c.of.known(address)) {
		c.of.refuse(old, errMany)
		_ = old.Close() // it is dropped, whatever the error
	}
}

func (cs *conns) prove(c *conn, address string, known bool) (surplus []*conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c.closed || c.peer != "" {
		return nil
	}
	c.peer = address
	c.leaveLocked(cs.mu.fresh)
	mine := cs.mu.peers[address]
	if mine == nil {
		mine = list.New()
		cs.mu.peers[address] = mine
	}
	c.enterLocked(mine)
	if mine.Len() > maxPerPeer {
		surplus = append(surplus, front(mine))
	}
	if !known {
		c.enterLocked(cs.mu.strange)
	}
	if cs.mu.strange.Len() > maxStrange {
		old := front(cs.mu.strange)
		old.leaveLocked(cs.mu.strange)
		if !cs.known(old.peer) { // else it is a member now
			surplus = append(surplus, old)
		}
	}
	return surplus
}

var errHeld = fmt.Errorf("guard: more than %d MiB of messages that are not complete, from a peer that is not a member",
	maxHeld>>20)

var errAllHeld = fmt.Errorf("guard: more than %d MiB of messages that are not complete, from all such peers",
	maxHeldByAll>>20)

// Read implements net.Conn. A message takes memory from its first byte on, long before anything
// checks it.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 || c.trusted.Load() {
		return n, err
	}
	held, all := c.held.Add(int64(n)), c.of.held.Add(int64(n))
	if held > maxHeld {
		c.of.refuse(c, errHeld)
		_ = c.Close() // it is dropped, whatever the error
		return 0, errHeld
	}
	if all > maxHeldByAll {
		if most := c.of.holdsMost(); most != nil {
			c.of.refuse(most, errAllHeld)
			_ = most.Close()
		}
	}
	return n, err
}

// taken records that a message of the connection is complete, and whether its peer is a member.
// Other streams may have incomplete ones.
func (c *conn) taken(bytes int, member bool) {
	c.trusted.Store(member)
	if member || c.streams.Load() <= 1 {
		c.of.held.Add(-c.held.Swap(0))
		return
	}
	less := min(int64(bytes), c.held.Load())
	c.held.Add(-less)
	c.of.held.Add(-less)
}

// holdsMost returns the connection that holds most bytes.
func (cs *conns) holdsMost() (most *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.mu.open {
		if most == nil || c.held.Load() > most.held.Load() {
			most = c
		}
	}
	return most
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() {
		cs := c.of
		cs.mu.Lock()
		defer cs.mu.Unlock()
		c.idle.Stop()
		delete(cs.mu.open, c)
		c.closed = true
		c.of.held.Add(-c.held.Swap(0))
		for l := range c.in {
			c.leaveLocked(l)
		}
		if mine := cs.mu.peers[c.peer]; mine != nil && mine.Len() == 0 {
			delete(cs.mu.peers, c.peer)
		}
	})
	return c.Conn.Close()
}
