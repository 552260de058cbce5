package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/internal/zxid"
)

// session is a ZooKeeper session. After an expiry the client would start another session, with
// another node; this session is over instead.
type session struct {
	conn  *zk.Conn
	has   chan struct{} // closed when the first session is established
	over  chan struct{} // closed when the session has expired or should end
	end   func()        // closes over
	close func()        // ends the session, and waits until nothing of it is running

	mu struct {
		sync.Mutex
		wire net.Conn // the latest connection
	}
}

// connect returns when a session is established. When ctx ends, the session and calls in flight end
// too.
func (d *directory) connect(ctx context.Context) (*session, error) {
	s := &session{has: make(chan struct{}), over: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.over) })
	var seen zxid.Seen
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		wire, err := d.cfg.Dial(network, address, timeout)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.wire = wire
		return seen.Conn(wire), nil
	}
	conn, events, err := zk.Connect(d.cfg.Servers, d.cfg.SessionTimeout,
		zk.WithDialer(dial), zk.WithEventCallback(s.note()), zk.WithLogger(mute{}),
		zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	unhook := context.AfterFunc(ctx, s.end)
	closed := make(chan struct{})
	go func() { // the only place that closes; an expired session must not be replaced
		defer close(closed)
		<-s.over
		s.conn.Close() // waits for the server's answer, at most a second
		s.hangUp()
	}()
	s.close = func() {
		unhook()
		s.end()
		<-closed
		for range events { // until the client has stopped
		}
	}
	if err := s.await(d.cfg); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// note returns the callback for events, which are delivered one at a time.
func (s *session) note() zk.EventCallback {
	had := false
	return func(e zk.Event) {
		switch {
		case e.Type != zk.EventSession:
		case e.State == zk.StateExpired, e.State == zk.StateAuthFailed:
			s.end()
		case e.State == zk.StateHasSession && !had:
			had = true
			close(s.has)
		}
	}
}

func (s *session) await(c Config) error {
	patience := time.NewTimer(callTimeout)
	defer patience.Stop()
	select {
	case <-s.has:
	case <-s.over:
		return zk.ErrSessionExpired
	case <-patience.C:
		return fmt.Errorf("no session after %v", callTimeout)
	}
	if c.Auth == "" {
		return nil
	}
	return s.conn.AddAuth(c.AuthScheme, []byte(c.Auth))
}

// hangUp closes the connection, which unblocks calls that wait for a server that does not answer.
func (s *session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.wire != nil {
		_ = s.mu.wire.Close()
	}
}

// passes pauses after an error that the session may survive, and reports whether it was one.
func (s *session) passes(err error) bool {
	if !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer) {
		return false
	}
	pause := time.NewTimer(retry / 4)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-s.over:
		return false
	}
}

// mute discards the client's log: failed calls return errors.
type mute struct{}

func (mute) Printf(string, ...any) {}
