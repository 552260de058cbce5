// Package link adds to the client of ZooKeeper what it lacks: calls that end with their context, a
// bound on calls in flight, and servers left as soon as they are silent.
package link

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/zxid"
)

// Config is the configuration of a link. All fields are required.
type Config struct {
	Servers        []string      // addresses, each host:port
	SessionTimeout time.Duration // the timeout that the client requests
	Dial           zk.Dialer     // connects to a server
}

// Link is a ZooKeeper session, and the connection to the server that serves it at present. When the
// session expires, the client begins another one. Calls go through Call and Ask. A Link may be used
// by many goroutines.
type Link struct {
	conn    *zk.Conn
	dial    zk.Dialer
	events  <-chan zk.Event // closed when conn has stopped
	slots   chan struct{}   // one for each pending call
	asked   time.Duration   // session timeout
	silence time.Duration   // after which the link leaves a server
	seen    zxid.Seen

	syncing sync.Mutex // held until a request of Synced is sent

	mu struct {
		sync.Mutex
		wire    *wire
		sent    chan struct{} // closed when the next sync is sent
		nudged  time.Time     // last time
		granted time.Duration // session timeout, 0 before the first session
		ready   chan struct{} // closed while there is a session
		closed  bool
	}
}

const (
	maxCalls    = 1000
	dialTimeout = 4 * time.Second
	maxSilence  = 2200 * time.Millisecond // the usual TTL leaves time to renew after it
	nudgeAfter  = 200 * time.Millisecond
)

// ErrNotSent is wrapped by the errors of Call and Ask if nothing was sent to ZooKeeper, so that
// certainly nothing was written.
var ErrNotSent = errors.New("not sent")

// Connect returns a link that connects to the servers in the background, one after another, until
// Close. Errors are those of a wrong address.
func Connect(c Config) (*Link, error) {
	l := &Link{dial: c.Dial, slots: make(chan struct{}, maxCalls), asked: c.SessionTimeout,
		silence: min(maxSilence, c.SessionTimeout/10)}
	l.mu.ready, l.mu.sent = make(chan struct{}), make(chan struct{})
	conn, events, err := zk.Connect(c.Servers, c.SessionTimeout,
		zk.WithHostProvider(&hosts{}), zk.WithDialer(l.newWire), zk.WithEventCallback(l.note),
		zk.WithLogger(mute{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	l.conn, l.events = conn, events
	return l, nil
}

// hosts lets the client try all servers once without a pause after a connection was lost: the only
// server, or the address of a balancer, may answer on a new one. The client pauses for a second
// before it tries the server of the lost connection again.
type hosts struct {
	zk.DNSHostProvider
	lost bool // a connection was made since the last pause
}

// Connected implements zk.HostProvider, as Next does.
func (h *hosts) Connected() {
	h.lost = true
	h.DNSHostProvider.Connected()
}

func (h *hosts) Next() (server string, pause bool) {
	server, pause = h.DNSHostProvider.Next()
	if pause && h.lost {
		pause, h.lost = false, false
	}
	return server, pause
}

// mute drops the log of the client: the errors of calls report the same problems.
type mute struct{}

func (mute) Printf(string, ...any) {}

// ZK returns the client, for use by functions that run in Call or Ask.
func (l *Link) ZK() *zk.Conn { return l.conn }

// Granted returns the session timeout that the servers have granted, 0 before the first session.
func (l *Link) Granted() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.granted
}

// note keeps ready up to date.
func (l *Link) note(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.mu.ready:
		if e.State != zk.StateHasSession {
			l.mu.ready = make(chan struct{})
		}
	default:
		if e.State == zk.StateHasSession {
			close(l.mu.ready)
		}
	}
}

// await returns when there is a session.
func (l *Link) await(ctx context.Context) error {
	l.mu.Lock()
	ready, closed := l.mu.ready, l.mu.closed
	l.mu.Unlock()
	if closed {
		return fmt.Errorf("%w: %w", ErrNotSent, coordination.ErrClosed)
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: no server can be reached: %w", ErrNotSent, ctx.Err())
	}
}

// Call waits for a session, runs f, which calls ZooKeeper without a context, and returns its
// results or, once ctx has ended, the error of ctx. Then f may still be running and what it writes
// may still happen, unless the error wraps ErrNotSent; f must only clean up after its context has
// ended. At most 1000 functions run at a time, and further calls wait. A server that is silent for
// 200 ms meanwhile gets another request; one that is silent for 2.2 s, or for a tenth of the
// session timeout if that is less, is left for the next.
func Call[T any](ctx context.Context, l *Link, f func(context.Context) (T, error)) (T, error) {
	var none T
	if err := l.await(ctx); err != nil {
		return none, err
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	l.asks()
	go func() {
		defer func() { <-l.slots }()
		value, err := f(ctx)
		done <- result{value, err}
	}()
	late := time.NewTicker(nudgeAfter)
	defer late.Stop()
	for {
		select {
		case r := <-done:
			return r.value, r.err
		case <-late.C:
			l.nudge()
			l.unanswered()
		case <-ctx.Done():
			l.unanswered() // no tick may have come
			return none, ctx.Err()
		}
	}
}

// Ask is like Call, for reads: if the connection or the session is lost meanwhile, it runs f again,
// with the next server.
func Ask[T any](ctx context.Context, l *Link, f func(context.Context) (T, error)) (T, error) {
	for {
		value, err := Call(ctx, l, f)
		if ctx.Err() != nil || !errors.Is(err, zk.ErrConnectionClosed) &&
			!errors.Is(err, zk.ErrSessionExpired) {
			return value, err
		}
	}
}

// Synced calls read, for a function that runs in Ask, when the server has been asked to catch up
// with all writes. It does not wait for that answer: a server handles the requests of a connection
// in order. If the request fails, so does Synced. Nothing else may send a sync.
func Synced[T any](l *Link, path string, read func() (T, error)) (T, error) {
	caught := make(chan error, 1)
	l.syncing.Lock() // so the next one sent is this one
	sent := l.nextSync()
	go func() {
		_, err := l.conn.Sync(path)
		caught <- err
	}()
	var none T
	select {
	case <-sent:
		l.syncing.Unlock()
	case err := <-caught:
		l.syncing.Unlock()
		if err != nil {
			return none, err
		}
		caught <- nil
	}
	value, err := read()
	if err := <-caught; err != nil {
		return none, err
	}
	return value, err
}

// Close ends the session, and returns when everything that the link started has ended, within the
// silence after which Call leaves a server. Pending calls return soon, and later ones return an
// error that wraps ErrNotSent and coordination.ErrClosed. A server that does not confirm the end
// keeps the session, and the leases and places that belong to it, until the session timeout. Call
// it once.
func (l *Link) Close() {
	l.mu.Lock()
	l.mu.closed = true
	wire, most := l.mu.wire, l.silence
	select {
	case <-l.mu.ready:
	default:
		most = 0 // no server that could confirm it
	}
	l.mu.Unlock()
	var closing sync.WaitGroup
	closing.Go(l.conn.Close) // waits for one second at most
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range l.events { // until all goroutines of conn have stopped
		}
	}()
	wire.confirm(ended, most)
	<-ended
	closing.Wait()
	for range maxCalls {
		l.slots <- struct{}{}
	}
}
