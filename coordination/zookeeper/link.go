package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
)

// link adds to zk.Conn what that lacks. It bounds calls by contexts, leaves servers that do not
// respond, and knows the granted session timeout.
type link struct {
	conn    *zk.Conn
	dial    zk.Dialer
	events  <-chan zk.Event // closed when conn has stopped
	slots   chan struct{}   // one for each pending call
	asked   time.Duration   // session timeout
	silence time.Duration   // after which the link leaves a server

	mu struct {
		sync.Mutex
		wire    *wire
		nudged  time.Time     // last time
		granted time.Duration // session timeout, 0 before the first session
		ready   chan struct{} // closed while there is a session
		closed  bool
	}
}

const (
	maxCalls    = 1000
	dialTimeout = 4 * time.Second
	maxSilence  = 4 * time.Second
	nudgeAfter  = 200 * time.Millisecond
)

// errNotSent is wrapped when nothing was sent to ZooKeeper.
var errNotSent = errors.New("not sent")

func connect(c Config) (*link, error) {
	l := &link{dial: c.Dial, slots: make(chan struct{}, maxCalls), asked: c.SessionTimeout,
		silence: min(maxSilence, c.SessionTimeout/10)}
	l.mu.ready = make(chan struct{})
	conn, events, err := zk.Connect(c.Servers, c.SessionTimeout,
		zk.WithDialer(l.newWire), zk.WithEventCallback(l.note), zk.WithLogger(mute{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	l.conn, l.events = conn, events
	return l, nil
}

// mute drops the log of the client: the errors of calls report the same problems.
type mute struct{}

func (mute) Printf(string, ...any) {}

// note keeps ready up to date.
func (l *link) note(e zk.Event) {
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
func (l *link) await(ctx context.Context) error {
	l.mu.Lock()
	ready, closed := l.mu.ready, l.mu.closed
	l.mu.Unlock()
	if closed {
		return fmt.Errorf("%w: %w", errNotSent, coordination.ErrClosed)
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: no server can be reached: %w", errNotSent, ctx.Err())
	}
}

// call runs f, which calls ZooKeeper without a context, and waits for it no longer than ctx. After
// ctx has ended, f must only clean up.
func call[T any](ctx context.Context, l *link, f func(context.Context) (T, error)) (T, error) {
	var none T
	if err := l.await(ctx); err != nil {
		return none, err
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return none, fmt.Errorf("%w: %w", errNotSent, ctx.Err())
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
		case <-ctx.Done():
			l.unanswered()
			return none, ctx.Err()
		}
	}
}

// ask is like call, for reads: if the connection is lost meanwhile, it asks the next server.
func ask[T any](ctx context.Context, l *link, f func(context.Context) (T, error)) (T, error) {
	for {
		value, err := call(ctx, l, f)
		if ctx.Err() != nil || !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrSessionExpired) {
			return value, err
		}
	}
}

// close ends the session. Pending calls return soon. A server that does not confirm the end keeps
// the session, and the leases and places that belong to it, until the session timeout.
func (l *link) close() {
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

// fits returns an error if a TTL is too long for the session timeout.
func (l *link) fits(ttl time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := l.mu.granted * 3 / 4; l.mu.granted > 0 && ttl > most {
		return fmt.Errorf("TTL (%v) must be at most %v, 3/4 of the granted session timeout (%v, of %v requested)", ttl, most, l.mu.granted, l.asked)
	}
	return nil
}
