package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
)

// link is the way to ZooKeeper: what zk.Conn does not do. It bounds calls by contexts, leaves servers that do not
// answer, and knows the session timeout that was granted.
type link struct {
	conn    *zk.Conn
	dial    zk.Dialer
	events  <-chan zk.Event // closed when conn has ended
	slots   chan struct{}   // one for each call under way
	asked   time.Duration   // session timeout
	silence time.Duration   // after which a server is left

	mu struct {
		sync.Mutex
		wire    *wire
		nudged  time.Time     // last
		granted time.Duration // session timeout, 0 until there was a session
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

// errNotSent says that nothing was asked of ZooKeeper.
var errNotSent = errors.New("not sent")

func connect(c Config) (*link, error) {
	l := &link{dial: c.Dial, slots: make(chan struct{}, maxCalls), asked: c.SessionTimeout, silence: min(maxSilence, c.SessionTimeout/10)}
	l.mu.ready = make(chan struct{})
	conn, events, err := zk.Connect(c.Servers, c.SessionTimeout,
		zk.WithDialer(l.newWire), zk.WithEventCallback(l.note), zk.WithLogger(mute{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	l.conn, l.events = conn, events
	return l, nil
}

// mute leaves out what the client logs: calls tell of it.
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

// call runs f, which asks ZooKeeper without a context, and does not wait for it longer than ctx. What f does
// after ctx has ended must be cleaning up.
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

// ask is call for what only reads: if the connection is lost meanwhile, it asks the next server.
func ask[T any](ctx context.Context, l *link, f func(context.Context) (T, error)) (T, error) {
	for {
		value, err := call(ctx, l, f)
		if ctx.Err() != nil || !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrSessionExpired) {
			return value, err
		}
	}
}

// close ends the session. Calls under way end soon.
func (l *link) close() {
	l.mu.Lock()
	l.mu.closed = true
	l.mu.Unlock()
	l.conn.Close()
	l.mu.Lock()
	if l.mu.wire != nil {
		_ = l.mu.wire.Close()
	}
	l.mu.Unlock()
	for range l.events { // until all of conn has ended
	}
	for range maxCalls {
		l.slots <- struct{}{}
	}
}

// fits tells whether a session outlives a TTL.
func (l *link) fits(ttl time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := l.mu.granted * 3 / 4; l.mu.granted > 0 && ttl > most {
		return fmt.Errorf("TTL (%v) must be at most %v, 3/4 of the session timeout that was granted (%v of %v)", ttl, most, l.mu.granted, l.asked)
	}
	return nil
}

// wire is a connection that notes when something came, and reads the session timeout from the first answer.
type wire struct {
	net.Conn
	link  *link
	begun []byte    // of the first answer
	heard time.Time // when something came, or was asked by who was the only one to wait; guarded by link.mu
}

// newWire connects to a server, which must answer soon.
func (l *link) newWire(network, address string, _ time.Duration) (net.Conn, error) {
	conn, err := l.dial(network, address, min(dialTimeout, l.asked))
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: conn, link: l, heard: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		_ = conn.Close()
		return nil, coordination.ErrClosed
	}
	if l.mu.wire != nil {
		_ = l.mu.wire.Close() // the client leaves it open when a session has expired
	}
	l.mu.wire = w
	return w, nil
}

// SetReadDeadline does not let the client wait for the first answer as long as it would.
func (w *wire) SetReadDeadline(t time.Time) error {
	if most := time.Now().Add(dialTimeout); len(w.begun) < answerHead && (t.IsZero() || t.After(most)) {
		t = most
	}
	return w.Conn.SetReadDeadline(t)
}

// The first answer begins with its length, the version of the protocol, and the timeout in milliseconds.
const answerHead = 12

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n == 0 {
		return n, err
	}
	w.link.mu.Lock()
	defer w.link.mu.Unlock()
	w.heard = time.Now()
	if missing := answerHead - len(w.begun); missing > 0 {
		w.begun = append(w.begun, p[:min(n, missing)]...)
		if len(w.begun) == answerHead {
			if ms := int32(binary.BigEndian.Uint32(w.begun[8:])); ms > 0 { // not if the session has expired
				w.link.mu.granted = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return n, err
}

// asks notes, before a request, that an answer is expected from now on, unless others wait for one already.
func (l *link) asks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.mu.wire; w != nil && len(l.slots) == 1 {
		w.heard = time.Now()
	}
}

// silentForLocked is how long nothing has come although somebody waits, who asks for it.
func (l *link) silentForLocked() time.Duration {
	if l.mu.wire == nil {
		return 0
	}
	return time.Since(l.mu.wire.heard)
}

// nudge asks for something else when a server is silent. From 3.6.0 on to 3.8.0, one that has few clients may miss that
// it has something to do (ZOOKEEPER-4537), and goes on when the next request arrives.
func (l *link) nudge() {
	l.mu.Lock()
	now := time.Now()
	due := !l.mu.closed && l.silentForLocked() >= nudgeAfter && now.Sub(l.mu.nudged) >= nudgeAfter
	if due {
		l.mu.nudged = now
	}
	l.mu.Unlock()
	if !due {
		return
	}
	select {
	case l.slots <- struct{}{}:
	default:
		return // enough is asked
	}
	go func() {
		defer func() { <-l.slots }()
		_, _, _ = l.conn.Exists("/")
	}()
}

// unanswered leaves a server that has been silent for too long. The client would wait for 2/3 of the session
// timeout, and most of a TTL would be over.
func (l *link) unanswered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silentForLocked() >= l.silence {
		_ = l.mu.wire.Close()
	}
}
