// Package memnet is a loopback network without ports, for tests of servers and their clients.
package memnet

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

var (
	listeners sync.Map // *listener by address
	last      atomic.Uint32
)

// listener is a Unix socket. Connections within the process, such as grpc's bufconn, have deadlines
// that may fire after they were changed.
type listener struct {
	net.Listener
	address address
	dir     string
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// conn is either end of a connection. The port of the end that has dialled is 0.
type conn struct {
	net.Conn
	local, remote address
}

func (c conn) LocalAddr() net.Addr  { return c.local }
func (c conn) RemoteAddr() net.Addr { return c.remote }

const nowhere address = "127.0.0.1:0"

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn{c, l.address, nowhere}, nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.address }

// Close implements net.Listener. The address then refuses connections.
func (l *listener) Close() error {
	listeners.Delete(string(l.address))
	defer os.RemoveAll(l.dir)
	return l.Listener.Close()
}

// Listen listens at a port of 127.0.0.1. No listener gets the port of one of the last 60,000.
func Listen() net.Listener {
	dir, err := os.MkdirTemp("", "net")
	if err != nil {
		panic(err)
	}
	l := &listener{dir: dir, address: address(fmt.Sprint("127.0.0.1:", 1000+last.Add(1)%60_000))}
	if l.Listener, err = net.Listen("unix", filepath.Join(dir, "s")); err != nil {
		panic(err)
	}
	listeners.Store(string(l.address), l)
	return l
}

// Dial connects to a listener.
func Dial(ctx context.Context, _, to string) (net.Conn, error) {
	l, ok := listeners.Load(to)
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: address(to),
			Err: syscall.ECONNREFUSED}
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", filepath.Join(l.(*listener).dir, "s"))
	if err != nil {
		return nil, err
	}
	return conn{c, nowhere, address(to)}, nil
}
