// Package memnet is a loopback network in memory, for tests of servers and their clients that open
// no port.
package memnet

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc/test/bufconn"
)

var (
	listeners sync.Map // *listener by address
	last      atomic.Uint32
)

type listener struct {
	*bufconn.Listener
	address address
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
	return l.Listener.Close()
}

// Listen listens at a port of 127.0.0.1. No listener gets the port of one of the last 60,000.
func Listen() net.Listener {
	port := 1000 + last.Add(1)%60_000
	l := &listener{bufconn.Listen(1 << 16), address(fmt.Sprint("127.0.0.1:", port))}
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
	c, err := l.(*listener).DialContext(ctx)
	if err != nil {
		return nil, err
	}
	return conn{c, nowhere, address(to)}, nil
}
