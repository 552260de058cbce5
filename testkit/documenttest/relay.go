package documenttest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// relay forwards connections to a server.
type relay struct {
	t           *testing.T
	to, address string
	running     sync.WaitGroup

	mu struct {
		sync.Mutex
		listener net.Listener // nil while connections are refused
		open     []net.Conn
		silent   bool // answers are read and dropped
	}
}

func newRelay(t *testing.T, to string) *relay {
	r := &relay{t: t, to: to, address: "127.0.0.1:0"}
	r.listen()
	t.Cleanup(func() {
		r.close()
		r.running.Wait()
	})
	return r
}

// listen accepts connections, at the same address each time.
func (r *relay) listen() {
	r.t.Helper()
	l, err := net.Listen("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.address = l.Addr().String()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.listener = l
	r.running.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			r.connect(near)
		}
	})
}

func (r *relay) connect(near net.Conn) {
	far, err := net.DialTimeout("tcp", r.to, 10*time.Second)
	if err != nil {
		_ = near.Close()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.open = append(r.mu.open, near, far)
	r.forward(far, near)
	r.forward(answers{near, r}, far)
}

func (r *relay) forward(to io.WriteCloser, from net.Conn) {
	r.running.Go(func() {
		_, _ = io.Copy(to, from)
		_ = to.Close()
		_ = from.Close()
	})
}

// answers writes to the client, unless the relay withholds answers.
type answers struct {
	net.Conn
	relay *relay
}

func (a answers) Write(p []byte) (int, error) {
	a.relay.mu.Lock()
	silent := a.relay.mu.silent
	a.relay.mu.Unlock()
	if silent {
		return len(p), nil
	}
	return a.Conn.Write(p)
}

// withhold drops the server's answers until cut is called.
func (r *relay) withhold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.silent = true
}

// cut breaks all connections. New connections work.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.mu.open {
		_ = c.Close()
	}
	r.mu.open, r.mu.silent = nil, false
}

// close breaks all connections and refuses new ones.
func (r *relay) close() {
	r.mu.Lock()
	l := r.mu.listener
	r.mu.listener = nil
	r.mu.Unlock()
	if l != nil {
		_ = l.Close()
	}
	r.cut()
}
