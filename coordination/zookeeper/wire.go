package zookeeper

import (
	"encoding/binary"
	"net"
	"time"

	"github.com/concord-go/concord/coordination"
)

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
