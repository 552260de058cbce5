package link

import (
	"encoding/binary"
	"net"
	"time"

	"github.com/concord-go/concord/coordination"
)

// wire is a connection that records when data arrived, and reads the session timeout from the first
// response.
type wire struct {
	net.Conn
	link  *Link
	begun []byte    // of the first response
	heard time.Time // last read, or start of the only pending request; guarded by link.mu
}

// newWire connects to a server, which must respond soon.
func (l *Link) newWire(network, address string, _ time.Duration) (net.Conn, error) {
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
	return l.seen.Conn(w), nil
}

// SetReadDeadline shortens the time that the client waits for the first response.
func (w *wire) SetReadDeadline(t time.Time) error {
	if most := time.Now().Add(dialTimeout); len(w.begun) < answerHead &&
		(t.IsZero() || t.After(most)) {
		t = most
	}
	return w.Conn.SetReadDeadline(t)
}

// The first response begins with its length, the version of the protocol, and the timeout in
// milliseconds.
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
			if ms := int32(binary.BigEndian.Uint32(w.begun[8:])); ms > 0 {
				// not if the session has expired
				w.link.mu.granted = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return n, err
}

// Write is for whole requests. It records when a sync is sent.
func (w *wire) Write(p []byte) (int, error) {
	n, err := w.Conn.Write(p)
	w.link.mu.Lock()
	defer w.link.mu.Unlock()
	begun := len(w.begun) == answerHead // before, p has another form
	if begun && len(p) >= requestHead && binary.BigEndian.Uint32(p[8:]) == opSync {
		close(w.link.mu.sent)
		w.link.mu.sent = make(chan struct{})
	}
	return n, err
}

// A request begins with its length, its number and its type.
const (
	requestHead = 12
	opSync      = 9
)

// nextSync returns a channel that is closed when the next sync is sent.
func (l *Link) nextSync() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.sent
}

// asks records, before a request, that a response is expected from now on, unless other requests
// are already pending.
func (l *Link) asks() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w := l.mu.wire; w != nil && len(l.slots) == 1 {
		w.heard = time.Now()
	}
}

// silentForLocked returns the time since the last read while a request is pending.
func (l *Link) silentForLocked() time.Duration {
	if l.mu.wire == nil {
		return 0
	}
	return time.Since(l.mu.wire.heard)
}

// nudge sends another request to a silent server. Servers of 3.6.0 to 3.8.0 with few clients may
// miss a wake-up (ZOOKEEPER-4537), and continue when the next request arrives.
func (l *Link) nudge() {
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
		return // enough requests are pending
	}
	go func() {
		defer func() { <-l.slots }()
		_, _, _ = l.conn.Exists("/")
	}()
}

// unanswered closes the connection to a server that has been silent for too long. The client itself
// would wait for 2/3 of the session timeout, which uses up most of a TTL.
func (l *Link) unanswered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.silentForLocked() >= l.silence {
		_ = l.mu.wire.Close()
	}
}

// ping is the client's own request to keep a session, with its length. No caller waits for it.
var ping = []byte{0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 11}

// confirm gives the server time to end the session, until ended is closed, and then closes the
// connection. The client, which is closing, sends nothing more, so confirm itself nudges a server
// that missed the request (see nudge). It writes whole requests only, as the client does.
func (w *wire) confirm(ended <-chan struct{}, most time.Duration) {
	if w == nil {
		return
	}
	defer func() { _ = w.Close() }()
	late := time.NewTicker(nudgeAfter)
	defer late.Stop()
	for end := time.After(most); ; {
		select {
		case <-ended:
			return
		case <-end:
			return
		case <-late.C:
			if err := w.SetWriteDeadline(time.Now().Add(nudgeAfter)); err != nil {
				return
			}
			if _, err := w.Write(ping); err != nil {
				return
			}
		}
	}
}
