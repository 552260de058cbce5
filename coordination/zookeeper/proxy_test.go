//go:build stores

package zookeeper_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy forwards connections to a server.
type proxy struct {
	address   string
	swallowed atomic.Int64 // responses
	mu        sync.Mutex
	pairs     []*pair
}

// pair is one connection, in two halves.
type pair struct {
	near, far net.Conn
	silent    atomic.Bool // drops responses
	proxy     *proxy

	mu   sync.Mutex
	lazy bool   // holds each request back until the next
	kept []byte // a request
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{address: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return // closed
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			c := &pair{near: near, far: far, proxy: p}
			p.mu.Lock()
			p.pairs = append(p.pairs, c)
			p.mu.Unlock()
			wg.Go(func() { c.forward(writer(c.request), near) })
			wg.Go(func() { c.forward(writer(c.answer), far) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut()
		wg.Wait()
	})
	return p
}

// swallow forwards requests but drops responses, on the present connections.
func (p *proxy) swallow() {
	p.each(func(c *pair) { c.silent.Store(true) })
}

// dawdle holds each request back until the next, on the present connections.
func (p *proxy) dawdle() {
	p.each(func(c *pair) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lazy = true
	})
}

// cut closes the present connections.
func (p *proxy) cut() { p.each((*pair).close) }

func (p *proxy) each(do func(*pair)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.pairs {
		do(c)
	}
}

func (c *pair) close() {
	_ = c.near.Close()
	_ = c.far.Close()
}

func (c *pair) forward(to io.Writer, from io.Reader) {
	defer c.close()
	_, _ = io.Copy(to, from)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func (c *pair) answer(p []byte) (int, error) {
	if c.silent.Load() {
		c.proxy.swallowed.Add(1)
		return len(p), nil
	}
	return c.near.Write(p)
}

func (c *pair) request(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.far.Write(c.kept); err != nil {
		return 0, err
	}
	c.kept = nil
	if c.lazy {
		c.kept = append(c.kept, p...)
		return len(p), nil
	}
	return c.far.Write(p)
}
