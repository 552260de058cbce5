//go:build stores

package zookeeper_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper"
)

// TestTTL_IsBoundByTheSession: a lease that outlives the ZooKeeper session of its holder would
// admit a lock of another program.
func TestTTL_IsBoundByTheSession(t *testing.T) {
	s := open(t, zookeeper.Config{Path: fresh(), SessionTimeout: 40 * time.Second})
	rec := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: 30*time.Second + 1}
	_, err := s.Swap(t.Context(), "x", "", rec)
	if !errors.Is(err, leasestore.ErrRefused) || !strings.Contains(err.Error(),
		"must be at most 30s") {
		t.Errorf("got %v", err)
	}
	rec.TTL = 30 * time.Second
	_, err = s.Swap(t.Context(), "x", "", rec)
	must(t, err)
}

// TestTTL_IsBoundByWhatTheServerGrants tests a granted timeout that differs from the requested one.
func TestTTL_IsBoundByWhatTheServerGrants(t *testing.T) {
	s := open(t, zookeeper.Config{Path: fresh(), SessionTimeout: 500 * time.Hour})
	_, err := s.Swap(t.Context(), "x", "", leasestore.Record{Owner: "o", Nonce: "n", Token: 1,
		TTL: 100 * time.Hour})
	if !errors.Is(err, leasestore.ErrRefused) || !strings.Contains(err.Error(),
		"(48h0m0s, of 500h0m0s requested)") {
		t.Errorf("got %v", err)
	}
}

// patient gives each operation more time than a busy machine needs, so that errors must come from
// the store.
var patient = coordination.Config{TTL: 5 * time.Minute, OperationTimeout: 30 * time.Second,
	Drain: time.Second}

func TestRights(t *testing.T) {
	path := fresh()
	mine := zookeeper.Config{Path: path, AuthScheme: "digest", Auth: "shop:secret",
		ACL: zk.DigestACL(zk.PermAll&^zk.PermAdmin, "shop", "secret")}
	must(t, makeAll(client(t), path[:strings.LastIndex(path, "/")]))
	s := open(t, mine)
	g, err := faulty.Try(t, faulty.Session(t, s, coordination.Config{}).Lease("x"))
	must(t, err)
	stranger := open(t, zookeeper.Config{Path: path})
	_, err = faulty.Session(t, stranger, patient).Lease("x").TryAcquire(t.Context())
	if !errors.Is(err, coordination.ErrUnknown) || errors.Is(err, coordination.ErrHeld) ||
		!errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("without rights: %v", err)
	}
	_, ver, err := s.Load(t.Context(), "x")
	must(t, err)
	for _, old := range []leasestore.Version{ver, ""} {
		name := map[bool]string{true: "x", false: "new"}[old != ""]
		if _, err := stranger.Swap(t.Context(), name, old, leasestore.Record{Token: 9}); !errors.Is(
			err, leasestore.ErrRefused) {
			t.Errorf("swap of %s without rights: %v", name, err)
		}
	}
	must(t, g.Release(t.Context()))
}

func makeAll(c *zk.Conn, path string) error {
	for i := range path {
		if rest := path[i:]; i > 0 && rest[0] == '/' {
			if _, err := c.Create(path[:i], nil, 0, zk.WorldACL(zk.PermAll)); err != nil &&
				!errors.Is(err, zk.ErrNodeExists) {
				return err
			}
		}
	}
	_, err := c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

func TestClose_LaterCallsAreRefused(t *testing.T) {
	s := open(t, zookeeper.Config{Path: fresh()})
	must(t, s.Close())
	must(t, s.Close())
	if _, _, err := s.Load(t.Context(), "x"); !errors.Is(err, coordination.ErrClosed) {
		t.Errorf("load: %v", err)
	}
	if _, err := s.Swap(t.Context(), "x", "", leasestore.Record{Token: 1}); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("swap: %v", err)
	}
}

func TestOpen_WithoutServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a server that never responds
	must(t, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := zookeeper.Open(ctx, zookeeper.Config{
		Servers: []string{l.Addr().String()}}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestSilentServer_IsLeft: a connection that fails silently costs seconds, but no lease.
func TestSilentServer_IsLeft(t *testing.T) {
	p := newProxy(t, servers(t)[0])
	s := open(t, zookeeper.Config{Servers: []string{p.address}, Path: fresh()})
	g, err := faulty.Session(t, s, coordination.Config{TTL: 30 * time.Second,
		RenewInterval: time.Second, OperationTimeout: time.Second}).Lease("x").Acquire(t.Context())
	must(t, err)
	p.swallow()
	for g.Remaining() > 28*time.Second { // until renewals fail
		time.Sleep(50 * time.Millisecond)
	}
	// Wait until the lease is renewed.
	for left := g.Remaining(); g.Remaining() <= left; time.Sleep(50 * time.Millisecond) {
		left = g.Remaining()
		must(t, g.Check())
	}
	must(t, g.Release(t.Context()))
}

// TestServerThatMissesItsWork_IsNudged: some servers continue only on another request. There would
// be none here, because the next ping is hours away.
func TestServerThatMissesItsWork_IsNudged(t *testing.T) {
	p := newProxy(t, servers(t)[0])
	s := open(t, zookeeper.Config{Servers: []string{p.address}, Path: fresh(),
		SessionTimeout: long})
	p.dawdle()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ver, err := s.Swap(ctx, "x", "", leasestore.Record{Token: 1})
	must(t, err)
	_, got, err := s.Load(ctx, "x")
	if err != nil || got != ver {
		t.Errorf("got %q %v, want %q", got, err, ver)
	}
}

// TestClose_NudgesTheServer: a place is there as long as the ZooKeeper session. A server that
// missed the end of a session would keep it, and a lease with it, until the session timeout.
func TestClose_NudgesTheServer(t *testing.T) {
	path := fresh()
	p := newProxy(t, servers(t)[0])
	gone := open(t, zookeeper.Config{Servers: []string{p.address}, Path: path,
		SessionTimeout: long})
	_, err := gone.Swap(t.Context(), "x", "", leasestore.Record{Owner: "o", Nonce: "n", Token: 1,
		TTL: time.Hour})
	must(t, err)
	s := open(t, zookeeper.Config{Path: path})
	held := func() bool {
		t.Helper()
		rec, _, err := s.Load(t.Context(), "x")
		must(t, err)
		return rec.Nonce != ""
	}
	if !held() {
		t.Fatal("not held")
	}
	p.dawdle()
	must(t, gone.Close())
	for end := time.Now().Add(30 * time.Second); held(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) { // much less than the session timeout
			t.Fatal("held 30s after the store was closed")
		}
	}
}

// TestLostConnection_ReadsAndWatchesGoOn: if a connection is lost, a pending read asks the next
// server. A watch that returned instead was started again only after RetryInterval, and missed the
// release that it waited for.
func TestLostConnection_ReadsAndWatchesGoOn(t *testing.T) {
	p := newProxy(t, servers(t)[0])
	s := open(t, zookeeper.Config{Servers: []string{p.address}, Path: fresh(),
		SessionTimeout: 10 * time.Minute})
	_, err := s.Swap(t.Context(), "x", "", leasestore.Record{Token: 1})
	must(t, err)
	load := func() error { _, _, err := s.Load(t.Context(), "x"); return err }
	watch := func() (err error) {
		for _, err = range s.Watch(t.Context(), "x") {
			break
		}
		return err
	}
	for what, ask := range map[string]func() error{"load": load, "watch": watch} {
		answered := make(chan error, 1)
		for asking := false; !asking; { // until a response is dropped
			p.swallow()
			swallowed := p.swallowed.Load()
			go func() { answered <- ask() }()
			for asking = true; asking && p.swallowed.Load() == swallowed; time.Sleep(
				time.Millisecond) {
				select {
				case err := <-answered: // on a new connection
					must(t, err)
					asking = false
				default:
				}
			}
		}
		p.cut()
		if err := <-answered; err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
