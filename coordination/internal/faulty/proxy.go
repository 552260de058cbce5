// Package faulty has a proxy with faults, and what tests of stores do with it.
package faulty

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to a server. It may delay them, let them fall silent, or make new
// ones slow.
type Proxy struct {
	Address string

	listener net.Listener
	to       string
	wg       sync.WaitGroup

	mu struct {
		sync.Mutex
		delay   time.Duration
		opening time.Duration
		silent  bool // also connections to come
		lasting bool
		sent    int
		pairs   []*pair
	}
}

// pair is a connection, in two halves.
type pair struct {
	near, far net.Conn
	opened    time.Time     // when it begins to carry something
	silent    chan struct{} // closed when the connection is silent
	ended     chan struct{}
	once      [2]sync.Once
}

// New returns a proxy for a server until the test ends.
func New(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Address: l.Addr().String(), listener: l, to: to}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		pairs := p.mu.pairs
		p.mu.Unlock()
		for _, c := range pairs {
			c.close()
		}
		p.wg.Wait()
	})
	return p
}

// Port returns the port of the proxy.
func (p *Proxy) Port() string {
	_, port, _ := net.SplitHostPort(p.Address) // it is one
	return port
}

// Delay delays what is sent from now on, in each direction, on all connections.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.delay = d
}

// OpenIn makes connections to come slow: each carries nothing until d after it was accepted.
func (p *Proxy) OpenIn(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.opening = d
}

// Silence drops all that is sent on the present connections, which stay open.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.silent = p.mu.lasting
	for _, c := range p.mu.pairs {
		c.silence()
	}
}

// Cut closes the present connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.mu.pairs {
		c.close()
	}
	p.mu.pairs = nil
}

// Sent returns how often clients have sent something: about as many requests as they have made.
func (p *Proxy) Sent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.sent
}

// Lasting lets Silence count for connections to come too: they are accepted, and never answered.
func (p *Proxy) Lasting() *Proxy {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.lasting = true
	return p
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		far, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		c := &pair{near: near, far: far, silent: make(chan struct{}), ended: make(chan struct{})}
		p.mu.Lock()
		c.opened = time.Now().Add(p.mu.opening)
		p.mu.pairs = append(p.mu.pairs, c)
		if p.mu.silent {
			c.silence()
		}
		p.mu.Unlock()
		p.wg.Go(func() { p.forward(c, near, far) })
		p.wg.Go(func() { p.forward(c, far, near) })
	}
}

// piece is what was read at once, and when it is to be sent.
type piece struct {
	data []byte
	at   time.Time
}

func (p *Proxy) forward(c *pair, from, to net.Conn) {
	pieces := make(chan piece, 1<<12)
	p.wg.Go(func() {
		defer c.close()
		for q := range pieces {
			select {
			case <-time.After(time.Until(q.at)):
			case <-c.ended:
				return
			}
			select {
			case <-c.silent:
			default:
				if _, err := to.Write(q.data); err != nil {
					return
				}
			}
		}
	})
	defer close(pieces)
	for {
		data := make([]byte, 32<<10)
		n, err := from.Read(data)
		p.mu.Lock()
		at := time.Now().Add(p.mu.delay)
		if at.Before(c.opened) {
			at = c.opened
		}
		if from == c.near {
			p.mu.sent++
		}
		p.mu.Unlock()
		select {
		case pieces <- piece{data[:n], at}:
		case <-c.ended:
			return
		}
		if err != nil {
			return
		}
	}
}

func (c *pair) silence() { c.once[0].Do(func() { close(c.silent) }) }

func (c *pair) close() {
	c.once[1].Do(func() {
		close(c.ended)
		_ = c.near.Close()
		_ = c.far.Close()
	})
}
