// Package zxid keeps the number of the last ZooKeeper transaction (zxid) for a client of
// github.com/go-zookeeper/zk. After a reconnect, that client sets its watches again from the last
// number that it has seen. Meanwhile it may read answers, which raise the number: this is a data
// race (its pull request 35), and such an answer hides changes from a watch.
package zxid

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
)

// Seen holds the numbers for all connections of one client. The zero value is ready.
type Seen struct {
	mu      sync.Mutex
	last    uint64 // the last one seen
	watched uint64 // no watch has missed a change up to here
}

// Conn returns the connection that the client uses in place of c. The client reads no number in an
// answer; its requests get the right ones.
func (s *Seen) Conn(c net.Conn) net.Conn { return &conn{Conn: c, seen: s} }

// conn is read by one goroutine at a time, and written by one at a time.
type conn struct {
	net.Conn
	seen *Seen

	asked  bool // for a session; of the writer
	began  bool // with the answer to that; of the reader
	answer []byte
	left   int // bytes of the answer that are still to be read from Conn
	buf    [headLen]byte

	// guarded by seen.mu
	from    uint64 // watches are set from here
	watches uint32 // id of the request that sets them
	set     bool   // they are set
}

// A request or an answer begins with its length, 4 bytes. Then follow, big-endian, in
//   - the request for a session: version 4, last number 8, timeout 4, session 8 (0 for a new one)
//   - the answer to it: version 4, timeout 4, session 8 (0 if it has expired)
//   - another request: id 4, type 4; if it sets watches, the number to set them from 8
//   - another answer: id 4, number 8 (of an event, -1), error 4
const (
	headLen    = 20 // of an answer
	askLen     = 28 // of a request for a session, and of less than one that sets watches
	setWatches = 101
)

// Write is for whole requests, as the client writes them.
func (c *conn) Write(p []byte) (int, error) {
	if len(p) >= askLen {
		p = c.complete(slices.Clone(p))
	}
	return c.Conn.Write(p)
}

func (c *conn) complete(request []byte) []byte {
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	switch {
	case !c.asked:
		c.asked, c.from = true, c.seen.watched
		c.set = binary.BigEndian.Uint64(request[20:]) == 0
		binary.BigEndian.PutUint64(request[8:], c.seen.last)
	case binary.BigEndian.Uint32(request[8:]) == setWatches:
		c.watches = binary.BigEndian.Uint32(request[4:])
		binary.BigEndian.PutUint64(request[12:], c.from)
	}
	return request
}

func (c *conn) Read(p []byte) (int, error) {
	if len(c.answer)+c.left == 0 {
		if err := c.begin(); err != nil {
			return 0, err
		}
	}
	if len(c.answer) > 0 {
		n := copy(p, c.answer)
		c.answer = c.answer[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// begin reads the head of an answer.
func (c *conn) begin() error {
	head := c.buf[:]
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	size := int(int32(binary.BigEndian.Uint32(head)))
	if size < headLen-4 {
		return fmt.Errorf("zxid: ZooKeeper's answer has %d bytes, fewer than %d", size, headLen-4)
	}
	c.seen.mu.Lock()
	defer c.seen.mu.Unlock()
	if number := head[8:16]; !c.began {
		c.began = true
		if binary.BigEndian.Uint64(head[12:]) == 0 { // the next session has no watches
			c.seen.last, c.seen.watched = 0, 0
		}
	} else {
		c.note(binary.BigEndian.Uint32(head[4:]), binary.BigEndian.Uint64(number))
		if int64(binary.BigEndian.Uint64(number)) > 0 {
			clear(number)
		}
	}
	c.answer, c.left = head, size-(headLen-4)
	return nil
}

// note notes the number of an answer. Watches that are not set again yet may have missed a change
// before it.
func (c *conn) note(id uint32, number uint64) {
	c.set = c.set || id == c.watches && c.watches != 0
	if int64(number) <= 0 {
		return
	}
	c.seen.last = number
	if c.set {
		c.seen.watched = number
	}
}
