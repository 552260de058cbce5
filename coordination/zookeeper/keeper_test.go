//go:build stores

package zookeeper_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper"
)

// operator closes the ZooKeeper session of a store, like someone who has its id and password.
type operator struct {
	mu     sync.Mutex
	server string
	answer []byte // to the last request for a session
}

// dial records the first response on each connection.
func (o *operator) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	c, err := net.DialTimeout(network, address, timeout)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.server, o.answer = address, nil
	return &overheard{Conn: c, by: o}, nil
}

type overheard struct {
	net.Conn
	by *operator
}

// A response has its length, the version of the protocol, the timeout, the session and its password
// of 16 bytes.
const (
	idAt       = 12
	passwordAt = idAt + 8 + 4
	answerEnds = passwordAt + 16
)

func (c *overheard) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.by.mu.Lock()
	defer c.by.mu.Unlock()
	if missing := answerEnds - len(c.by.answer); missing > 0 {
		c.by.answer = append(c.by.answer, p[:min(n, missing)]...)
	}
	return n, err
}

// kill ends the present session, and returns when the server has confirmed that.
func (o *operator) kill(t *testing.T) {
	o.mu.Lock()
	server, answer := o.server, o.answer
	o.mu.Unlock()
	if len(answer) < answerEnds {
		t.Fatalf("no session yet: %x", answer)
	}
	c, err := net.Dial("tcp", server)
	must(t, err)
	defer c.Close()
	join := make([]byte, 0, 48)
	join = binary.BigEndian.AppendUint32(join, 44)      // length
	join = append(join, make([]byte, 4+8)...)           // version, last transaction seen
	join = binary.BigEndian.AppendUint32(join, 600_000) // timeout
	join = append(join, answer[idAt:passwordAt+16]...)
	_, err = c.Write(join)
	must(t, err)
	_, err = io.ReadFull(c, make([]byte, answerEnds))
	must(t, err)
	const closeSession = -11
	op := int32(closeSession)
	end := binary.BigEndian.AppendUint32(nil, 8) // length
	end = binary.BigEndian.AppendUint32(end, 1)  // number of the request
	_, err = c.Write(binary.BigEndian.AppendUint32(end, uint32(op)))
	must(t, err)
	_, _ = io.Copy(io.Discard, c) // until it is closed
}

// through returns a store whose ZooKeeper session can be killed, with a coordination session that
// renews often.
func through(t *testing.T) (*operator, zookeeper.Store, *coordination.Session) {
	o := &operator{}
	store := open(t, zookeeper.Config{Path: fresh(), SessionTimeout: 10 * time.Minute,
		Dial: o.dial})
	return o, store, faulty.Session(t, store, coordination.Config{TTL: 5 * time.Minute,
		RenewInterval: 100 * time.Millisecond, Drain: time.Second})
}

// nonce returns the nonce of the session that holds a lease, from its record.
func nonce(t *testing.T, s zookeeper.Store, name string) (string, coordination.Token) {
	t.Helper()
	rec, _, err := s.Load(t.Context(), name)
	must(t, err)
	if rec.Session == 0 {
		t.Fatalf("not held through a session: %+v", rec)
	}
	return rec.Nonce, rec.Session
}

// TestSession_LockWaitsForItsLeases: a lock waits for a lease until its release, although no record
// of a lease is renewed.
func TestSession_LockWaitsForItsLeases(t *testing.T) {
	_, store, session := through(t)
	s := side{store: store, conn: client(t), path: store.LockPath("b")}
	for _, name := range []string{"a", "b"} {
		_, err := faulty.Try(t, session.Lease(name))
		must(t, err)
	}
	of, _ := nonce(t, store, "b")
	l := s.lock()
	locked := locking(l)
	s.waitFor(t, 2)
	before, _, err := store.Load(t.Context(), leasestore.SessionRecords+of)
	must(t, err)
	// Wait for three renewals.
	for now := before; now.Attempt < before.Attempt+3; time.Sleep(10 * time.Millisecond) {
		now, _, err = store.Load(t.Context(), leasestore.SessionRecords+of)
		must(t, err)
	}
	select {
	case err := <-locked:
		t.Fatalf("locked beside a holder: %v", err)
	default:
	}
	g, err := faulty.Try(t, session.Lease("b"))
	must(t, err)
	must(t, g.Release(t.Context()))
	must(t, <-locked)
	must(t, l.Unlock())
}

// TestSession_KilledSessionEndsItsLeases: at the next renewal all losses are reported, locks of
// other programs get their turn at once, and a new tenure of the session begins in the next
// ZooKeeper session.
func TestSession_KilledSessionEndsItsLeases(t *testing.T) {
	o, store, session := through(t)
	s := side{store: store, conn: client(t), path: store.LockPath("b")}
	lost := make(chan *coordination.LostError, 2)
	for _, name := range []string{"a", "b"} {
		g, err := faulty.Try(t, session.Lease(name))
		must(t, err)
		g.OnLost(func(e *coordination.LostError) { lost <- e })
	}
	of, token := nonce(t, store, "b")
	l := s.lock()
	locked := locking(l)
	s.waitFor(t, 2)
	o.kill(t)
	for range 2 {
		if e := <-lost; e.Why != coordination.TakenOver {
			t.Errorf("told %v", e)
		}
	}
	must(t, <-locked)
	must(t, l.Unlock())
	g, err := session.Lease("b").Acquire(t.Context())
	must(t, err)
	if again, next := nonce(t, store, "b"); again != of || next <= token {
		t.Errorf("session %s at %d, before %s at %d", again, next, of, token)
	}
	must(t, g.Release(t.Context()))
}

// TestSession_NobodyClaimsThroughOneThatIsOver: neither a claim nor a renewal is written after the
// place of the session record is gone, whichever store has cached it, and a new tenure has a new
// place.
func TestSession_NobodyClaimsThroughOneThatIsOver(t *testing.T) {
	o := &operator{}
	path := fresh()
	store := open(t, zookeeper.Config{Path: path, SessionTimeout: 10 * time.Minute, Dial: o.dial})
	name := leasestore.SessionRecords + "n"
	rec := leasestore.Record{Owner: "o", Nonce: "n", Token: 5, TTL: time.Minute}
	ver, err := store.Swap(t.Context(), name, "", rec)
	must(t, err)
	claim := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, Session: 5, TTL: time.Minute}
	held, err := store.Swap(t.Context(), "a", "", claim)
	must(t, err)
	refused := func(what string) {
		t.Helper()
		claim.Attempt++
		for lease, old := range map[string]leasestore.Version{"a": held, "b": ""} {
			if err := connected(t, func() error {
				_, err := store.Swap(t.Context(), lease, old, claim)
				return err
			}); !errors.Is(err, leasestore.ErrRefused) {
				t.Errorf("%s, %s: %v", what, lease, err)
			}
		}
	}
	o.kill(t)
	refused("killed")
	rec.Attempt++
	if _, err := store.Swap(t.Context(), name, ver, rec); !errors.Is(err, leasestore.ErrConflict) {
		t.Errorf("renewed in another ZooKeeper session: %v", err)
	}
	over, ver, err := store.Load(t.Context(), name)
	if over.Nonce != "" || over.Token < 5 || err != nil {
		t.Errorf("the record of a session that is over: %+v %v", over, err)
	}
	rec.Token = over.Token + 1
	ver, err = store.Swap(t.Context(), name, ver, rec)
	must(t, err)
	refused("a later tenure")
	claim.Session = rec.Token
	_, err = store.Swap(t.Context(), "b", "", claim)
	must(t, err)
	if left := places(t, client(t), store.LockPath("b")); len(left) != 1 {
		t.Errorf("%q", left)
	}

	other := open(t, zookeeper.Config{Path: path, SessionTimeout: 10 * time.Minute})
	if _, err := other.Swap(t.Context(), "c", "", claim); !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("through the session of another store: %v", err)
	}
	c := client(t)
	before := places(t, c, store.LockPath(name))
	rec.Token++
	ver, err = store.Swap(t.Context(), name, ver, rec)
	must(t, err)
	if after := places(t, c, store.LockPath(name)); len(after) != 1 || after[0] == before[0] {
		t.Errorf("a new tenure has %q, the last one had %q", after, before)
	}
	_, err = store.Swap(t.Context(), name, ver, leasestore.Record{Token: rec.Token})
	must(t, err)
	claim.Session = rec.Token
	refused("given up")
}

// connected repeats calls that fail because the store is reconnecting.
func connected(t *testing.T, ask func() error) error {
	t.Helper()
	for {
		err := ask()
		if err == nil || t.Context().Err() != nil || !errors.Is(err, zk.ErrConnectionClosed) &&
			!errors.Is(err, zk.ErrSessionExpired) && !errors.Is(err, zk.ErrNoServer) {
			return err
		}
	}
}

func places(t *testing.T, c *zk.Conn, path string) []string {
	t.Helper()
	_, err := c.Sync(path) // another client has written the node
	must(t, err)
	line, _, err := c.Children(path)
	must(t, err)
	return line
}

// TestSession_CrashedLongAgo_LeavesNoRecord also if no session has taken its leases over.
func TestSession_CrashedLongAgo_LeavesNoRecord(t *testing.T) {
	path, c := fresh(), client(t)
	record := func(nonce string) zookeeper.Store {
		s := open(t, zookeeper.Config{Path: path, SessionTimeout: 10 * time.Minute})
		_, err := s.Swap(t.Context(), leasestore.SessionRecords+nonce, "", leasestore.Record{
			Owner: "o", Nonce: nonce, Token: 1, TTL: time.Minute})
		must(t, err)
		return s
	}
	must(t, record("crashed").Close())
	s := record("alive")
	// Load lets the server of this store catch up.
	_, _, err := s.Load(t.Context(), leasestore.SessionRecords+"crashed")
	must(t, err)
	parent := path + "/%sessions"
	zookeeper.Tidy(s, time.Now().Add(47*time.Hour))
	if got := places(t, c, parent); len(got) != 2 {
		t.Errorf("before two days are over: %q", got)
	}
	zookeeper.Tidy(s, time.Now().Add(49*time.Hour))
	if got := places(t, c, parent); len(got) != 1 || got[0] != "alive" {
		t.Errorf("left %q", got)
	}
}

// TestForever_HasAPlaceThatNoSessionEnds: locks of other programs wait until an operator releases
// it.
func TestForever_HasAPlaceThatNoSessionEnds(t *testing.T) {
	path := fresh()
	store := open(t, zookeeper.Config{Path: path, SessionTimeout: 10 * time.Minute})
	// The TTL is longer than the ZooKeeper session.
	rec := leasestore.Record{Owner: "o", Nonce: "dead", Token: 5, TTL: time.Hour, Forever: true}
	_, err := store.Swap(t.Context(), name, "", rec)
	must(t, err)
	must(t, store.Close())
	s := beside(t)
	s.store = open(t, zookeeper.Config{Path: path, SessionTimeout: 10 * time.Minute})
	s.lease, s.path = faulty.Session(t, s.store, patient).Lease(name), s.store.LockPath(name)
	l := s.lock()
	locked := locking(l)
	s.waitFor(t, 2)
	if _, err := faulty.Try(t, s.lease); !errors.Is(err, coordination.ErrHeld) {
		t.Errorf("beside a holder for ever: %v", err)
	}
	select {
	case err := <-locked:
		t.Fatalf("locked beside a holder for ever: %v", err)
	default:
	}
	must(t, s.lease.ForceRelease(t.Context(), 5))
	must(t, <-locked)
	must(t, l.Unlock())
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	must(t, g.Release(t.Context()))
}
