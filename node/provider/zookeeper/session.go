package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// session is one of ZooKeeper's. The client would begin another one by itself when it has expired; that
// would have another node, so the session is over then.
type session struct {
	conn  *zk.Conn
	has   chan struct{} // closed when there is a session for the first time
	over  chan struct{} // closed when the session has expired, or is to end
	end   func()        // closes over
	close func()        // ends it, and waits until nothing of it runs any more

	mu struct {
		sync.Mutex
		wire net.Conn // the latest
	}
}

// connect returns when there is a session. It ends with ctx, and so do calls under way.
func (d *directory) connect(ctx context.Context) (*session, error) {
	s := &session{has: make(chan struct{}), over: make(chan struct{})}
	s.end = sync.OnceFunc(func() { close(s.over) })
	dial := func(network, address string, timeout time.Duration) (net.Conn, error) {
		wire, err := d.cfg.Dial(network, address, timeout)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.wire = wire
		return wire, err
	}
	conn, events, err := zk.Connect(d.cfg.Servers, d.cfg.SessionTimeout,
		zk.WithDialer(dial), zk.WithEventCallback(s.note()), zk.WithLogger(mute{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	s.conn = conn
	unhook := context.AfterFunc(ctx, s.end)
	closed := make(chan struct{})
	go func() { // the only one that closes; an expired session must not be replaced
		defer close(closed)
		<-s.over
		s.conn.Close() // waits for the server's answer, a second at most
		s.hangUp()
	}()
	s.close = func() {
		unhook()
		s.end()
		<-closed
		for range events { // until the client has ended
		}
	}
	if err := s.await(d.cfg); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// note returns the callback for events, which come one at a time.
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

// hangUp ends what a server that does not answer would hold up.
func (s *session) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.wire != nil {
		_ = s.mu.wire.Close()
	}
}

// passes waits after an error that the session may outlive, and reports whether it was one.
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

// mute leaves out what the client logs: its calls report what fails.
type mute struct{}

func (mute) Printf(string, ...any) {}
