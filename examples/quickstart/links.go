package main

import (
	"context"
	"io"
	"net"
	"sync"
)

// link forwards the traffic from one node to a port of another, so that the driver can cut it. A
// cut link behaves like a broken network: no data arrives and no error is reported. After the cut
// is mended, the data arrives.
type link struct {
	listener net.Listener
	to       string

	mu     sync.Mutex
	mended chan struct{} // closed unless the link is cut
}

func newLink(to string) (*link, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	k := &link{listener: l, to: to, mended: make(chan struct{})}
	close(k.mended)
	go k.accept()
	return k, nil
}

func (k *link) addr() string { return k.listener.Addr().String() }

// accept accepts connections until the listener is closed at the end of the process.
func (k *link) accept() {
	for {
		in, err := k.listener.Accept()
		if err != nil {
			return
		}
		go k.carry(in)
	}
}

func (k *link) carry(in net.Conn) {
	defer in.Close()
	k.wait()
	out, err := net.Dial("tcp", k.to)
	if err != nil {
		return
	}
	defer out.Close()
	ended := make(chan struct{}, 2)
	go func() { k.copy(out, in); ended <- struct{}{} }()
	go func() { k.copy(in, out); ended <- struct{}{} }()
	<-ended
}

// copy forwards data, except while the link is cut.
func (k *link) copy(to io.Writer, from io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		k.wait()
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (k *link) wait() {
	k.mu.Lock()
	mended := k.mended
	k.mu.Unlock()
	<-mended
}

func (k *link) cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mended = make(chan struct{})
}

func (k *link) mend() {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.mended)
}

// links are the links between all nodes. Each pair of nodes i and j has two, for the provider and
// for remoting.
type links [nodeCount][nodeCount][2]*link

// lay creates the links to the ports of the nodes: first the provider's, then those of remoting.
func (l *links) lay(ports []int) (err error) {
	for i := range l {
		for j := range l[i] {
			for kind := range l[i][j] {
				if l[i][j][kind], err = newLink(loopback(ports[kind*nodeCount+j])); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isolate cuts every link to and from node i, until mend.
func (l *links) isolate(i int) (mend func()) {
	var cut []*link
	for j := range l {
		if j != i {
			cut = append(cut, l[i][j][:]...)
			cut = append(cut, l[j][i][:]...)
		}
	}
	for _, k := range cut {
		k.cut()
	}
	return func() {
		for _, k := range cut {
			k.mend()
		}
	}
}

// via returns how node i reaches the others: the provider's addresses, and those for remoting.
func (l *links) via(i int, ports []int) (providers []string, remoting map[string]string) {
	remoting = map[string]string{}
	for j := range l {
		if j == i {
			providers = append(providers, loopback(ports[i]))
			continue
		}
		providers = append(providers, l[i][j][0].addr())
		remoting[loopback(ports[nodeCount+j])] = l[i][j][1].addr()
	}
	return providers, remoting
}

// dialer returns a function that connects to other nodes through their links.
func dialer(via map[string]string) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		if link, ok := via[addr]; ok {
			addr = link
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", addr)
	}
}
