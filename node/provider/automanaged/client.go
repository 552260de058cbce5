package automanaged

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// newClient returns a client for health requests, with a connection to each host, and another one
// beside a late request. A dial takes at most timeout; the context of a request bounds that. The
// client follows no redirects: a host speaks only for itself.
func newClient(timeout, refresh time.Duration, identity *tls.Config) *http.Client {
	// A dial continues after its request was abandoned, and the next requests wait for it. The
	// kernel resends a lost SYN at growing intervals, so without a timeout a host would be detected
	// up to half a minute after the network is back.
	dialer := &net.Dialer{Timeout: timeout}
	return &http.Client{CheckRedirect: stay, Transport: &http.Transport{
		TLSClientConfig: identity, TLSHandshakeTimeout: timeout,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &patient{Conn: c, asked: make(chan struct{})}, nil
		},
		MaxConnsPerHost: 2, MaxIdleConnsPerHost: 1, IdleConnTimeout: 2*refresh + time.Second,
		MaxResponseHeaderBytes: maxAnswer,
	}}
}

// stay makes a redirect the answer.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// patient is a connection that reads nothing before it has written. A server of gRPC speaks first;
// if net/http reads that before its request is under way, it gives up the connection, writes to the
// standard log, and does not tell this from a host that does not answer.
type patient struct {
	net.Conn
	once  sync.Once
	asked chan struct{} // closed by the first Write, or by Close
}

func (p *patient) ask() { p.once.Do(func() { close(p.asked) }) }

// Read implements net.Conn.
func (p *patient) Read(b []byte) (int, error) {
	<-p.asked
	return p.Conn.Read(b)
}

// Write implements net.Conn.
func (p *patient) Write(b []byte) (int, error) {
	defer p.ask()
	return p.Conn.Write(b)
}

// Close implements net.Conn.
func (p *patient) Close() error {
	defer p.ask()
	return p.Conn.Close()
}
