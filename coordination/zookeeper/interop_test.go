//go:build stores

package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper"
)

const name = "bil/ling" // needs escaping

// side is a session of this module beside a client of ZooKeeper's own lock recipe.
type side struct {
	store zookeeper.Store
	lease *coordination.Lease
	conn  *zk.Conn
	path  string
}

func beside(t *testing.T) side {
	store := open(t, zookeeper.Config{Path: fresh(), SessionTimeout: 10 * time.Minute})
	session := faulty.Session(t, store, coordination.Config{TTL: time.Minute,
		RetryInterval: 10 * time.Second, Drain: time.Second})
	return side{store, session.Lease(name), client(t), store.LockPath(name)}
}

func (s side) lock() *zk.Lock { return zk.NewLock(s.conn, s.path, zk.WorldACL(zk.PermAll)) }

// waitFor waits until there are n places in line.
func (s side) waitFor(t *testing.T, n int) {
	t.Helper()
	for {
		line, _, err := s.conn.Children(s.path)
		if !errors.Is(err, zk.ErrNoNode) { // another server may not know of the node yet
			must(t, err)
		}
		if err == nil && len(line) == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// made returns the transaction that created the only place in line.
func (s side) made(t *testing.T) int64 {
	t.Helper()
	line := places(t, s.conn, s.path)
	if len(line) != 1 {
		t.Fatalf("got %q, want one place", line)
	}
	_, stat, err := s.conn.Exists(s.path + "/" + line[0])
	must(t, err)
	return stat.Czxid
}

func TestInterop_LockExcludesUs(t *testing.T) {
	s := beside(t)
	before, err := faulty.Try(t, s.lease)
	must(t, err)
	must(t, before.Release(t.Context()))
	l := s.lock()
	must(t, l.Lock())
	made := s.made(t)
	for range 2 {
		_, err = faulty.Try(t, s.lease)
		held, ok := errors.AsType[*coordination.HeldError](err)
		if !ok || !strings.Contains(held.Holder.Owner, s.path+"/_c_") {
			t.Fatalf("got %v, want the lock as holder", err)
		}
		if held.Holder.Token <= before.Token() || int64(held.Holder.Token) != made {
			t.Errorf("token %d, want %d, above %d", held.Holder.Token, made, before.Token())
		}
	}
	g := s.acquiring(t)
	must(t, l.Unlock())
	if g := <-g; int64(g.Token()) <= made {
		t.Errorf("token %d, not above that of the lock, %d", g.Token(), made)
	} else {
		must(t, g.Release(t.Context()))
	}
}

// acquiring waits for the lease in the background. If that fails, the channel receives no grant.
func (s side) acquiring(t *testing.T) <-chan *coordination.Grant {
	granted := make(chan *coordination.Grant, 1)
	go func() {
		defer close(granted)
		g, err := s.lease.Acquire(t.Context())
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		granted <- g
	}()
	return granted
}

// locking waits for the lock in the background.
func locking(l *zk.Lock) <-chan error {
	locked := make(chan error, 1)
	go func() { locked <- l.Lock() }()
	return locked
}

func TestInterop_WeExcludeLock(t *testing.T) {
	s := beside(t)
	rec := leasestore.Record{Owner: "o", Nonce: "holder", Token: 5, TTL: time.Minute}
	ver, err := s.store.Swap(t.Context(), name, "", rec)
	must(t, err)
	l := s.lock()
	locked := locking(l)
	s.waitFor(t, 2)
	rec.Attempt++
	ver, err = s.store.Swap(t.Context(), name, ver, rec)
	if err != nil {
		t.Fatalf("a lock in line hinders the holder: %v", err)
	}
	if _, err = faulty.Try(t, s.lease); !errors.Is(err, coordination.ErrHeld) {
		t.Errorf("beside a holder: %v", err)
	}
	select {
	case err := <-locked:
		t.Fatalf("locked beside a holder: %v", err)
	default:
	}
	after, err := s.store.Swap(t.Context(), name, ver, leasestore.Record{Token: rec.Token})
	must(t, err)
	must(t, <-locked)
	rec.Token++
	if _, err := s.store.Swap(t.Context(), name, after, rec); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("wrote on what was before the lock: %v", err)
	}
	if _, err = faulty.Try(t, s.lease); !errors.Is(err, coordination.ErrHeld) {
		t.Errorf("beside the lock: %v", err)
	}
	must(t, l.Unlock())
	if _, err := s.store.Swap(t.Context(), name, after, rec); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("wrote on what was before the lock, after it: %v", err)
	}
}

// TestInterop_OverdueHolderMakesWayForTheLine: a session that takes a lease over while locks of
// other programs wait gets a conflict, and they get the lock, although the holder's ZooKeeper
// session is alive.
func TestInterop_OverdueHolderMakesWayForTheLine(t *testing.T) {
	s := beside(t)
	rec := leasestore.Record{Owner: "o", Nonce: "overdue", Token: 5, TTL: time.Second}
	ver, err := s.store.Swap(t.Context(), name, "", rec)
	must(t, err)
	l := s.lock()
	locked := locking(l)
	s.waitFor(t, 2)
	next := leasestore.Record{Owner: "o", Nonce: "next", Token: 6, TTL: time.Second}
	if _, err := s.store.Swap(t.Context(), name, ver, next); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("past a lock that waits: %v", err)
	}
	must(t, <-locked)
	if _, err := s.store.Swap(t.Context(), name, ver, rec); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("the overdue holder renews: %v", err)
	}
	s.waitFor(t, 1) // ours has left the line
	must(t, l.Unlock())
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	must(t, g.Release(t.Context()))
}

// TestStaleVersions_StayDead: a version that was shown before a lock of another program stays
// invalid after that lock is gone.
func TestStaleVersions_StayDead(t *testing.T) {
	s := beside(t)
	rec := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: time.Minute}
	free, err := s.store.Swap(t.Context(), name, "", leasestore.Record{Token: 1})
	must(t, err)
	_, also, err := s.store.Load(t.Context(), name)
	must(t, err)
	l := s.lock()
	must(t, l.Lock())
	made := s.made(t)
	_, during, err := s.store.Load(t.Context(), name)
	must(t, err)
	must(t, l.Unlock())
	for _, old := range []leasestore.Version{"", free, also, during} {
		if _, err := s.store.Swap(t.Context(), name, old, rec); !errors.Is(err,
			leasestore.ErrConflict) {
			t.Errorf("version %q: %v", old, err)
		}
	}
	s.waitFor(t, 0)
	got, now, err := s.store.Load(t.Context(), name)
	must(t, err)
	if got.Nonce != "" || int64(got.Token) < made {
		t.Errorf("after the lock: %+v", got)
	}
	_, err = s.store.Swap(t.Context(), name, now, rec)
	must(t, err)
}

// TestEndedSession_IsFreeAtOnce: when ZooKeeper has ended the holder's session, the lease is free
// even for a contender that has not seen it before, and later writes of the holder are refused.
func TestEndedSession_IsFreeAtOnce(t *testing.T) {
	s := beside(t)
	other := open(t, zookeeper.Config{Path: s.path[:strings.LastIndex(s.path, "/")],
		SessionTimeout: time.Hour})
	rec := leasestore.Record{Owner: "o", Nonce: "dead", Token: 5, TTL: time.Minute}
	ver, err := other.Swap(t.Context(), name, "", rec)
	must(t, err)
	if _, err := faulty.Try(t, s.lease); !errors.Is(err, coordination.ErrHeld) {
		t.Fatalf("beside a holder: %v", err)
	}
	must(t, other.Close())
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	if g.Token() <= rec.Token {
		t.Errorf("token %d after %d", g.Token(), rec.Token)
	}
	if _, err := s.store.Swap(t.Context(), name, ver, rec); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("renewed after its end: %v", err)
	}
	must(t, g.Release(t.Context()))
}

// TestLosers_LeaveTheLine: of many concurrent writers one has a place afterwards, even if the
// others do not read again.
func TestLosers_LeaveTheLine(t *testing.T) {
	s := beside(t)
	free, err := s.store.Swap(t.Context(), name, "", leasestore.Record{Token: 1})
	must(t, err)
	var wg sync.WaitGroup
	var won atomic.Int32
	for i := range 20 {
		wg.Go(func() {
			_, err := s.store.Swap(t.Context(), name, free, leasestore.Record{
				Owner: "o", Nonce: fmt.Sprint(i), Token: 2, TTL: time.Minute})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, leasestore.ErrConflict):
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d winners", won.Load())
	}
	s.waitFor(t, 1)
}

// TestLeftBehind_ByAnOperator: the next read removes a place that no record names, and the lock
// that waited behind it gets its turn.
func TestLeftBehind_ByAnOperator(t *testing.T) {
	for what, flags := range map[string]int32{"ephemeral": zk.FlagEphemeral | zk.FlagSequence,
		"persistent": zk.FlagSequence} {
		t.Run(what, func(t *testing.T) {
			s := beside(t)
			_, err := s.store.Swap(t.Context(), name, "", leasestore.Record{Token: 1})
			must(t, err)
			left := s.path + "/concord-0123456789abcdef-0123456789abcdef-1-lock-"
			_, err = s.conn.Create(left, nil, flags, zk.WorldACL(zk.PermAll))
			must(t, err)
			l := s.lock()
			locked := locking(l)
			s.waitFor(t, 2)
			if _, err := faulty.Try(t, s.lease); !errors.Is(err, coordination.ErrHeld) {
				t.Errorf("past a lock that waits behind nobody: %v", err)
			}
			must(t, <-locked)
			must(t, l.Unlock())
			_, err = s.conn.Create(left, nil, flags, zk.WorldACL(zk.PermAll))
			must(t, err)
			g, err := faulty.Try(t, s.lease)
			must(t, err)
			s.waitFor(t, 1)
			must(t, g.Release(t.Context()))
		})
	}
}

// TestLostAnswer_LeavesNoPlaceWithoutARecord: a write without an answer is still atomic.
func TestLostAnswer_LeavesNoPlaceWithoutARecord(t *testing.T) {
	p := newProxy(t, servers(t)[0])
	path := fresh()
	store := open(t, zookeeper.Config{Servers: []string{p.address}, Path: path,
		SessionTimeout: 10 * time.Minute})
	s := side{store: store, conn: client(t), path: store.LockPath(name)}
	ver, err := store.Swap(t.Context(), name, "", leasestore.Record{Token: 1})
	must(t, err)
	p.swallow()
	ctx, cancel := context.WithCancel(t.Context())
	lost := make(chan error, 1)
	go func() {
		_, err := store.Swap(ctx, name, ver, leasestore.Record{Owner: "o", Nonce: "n", Token: 2,
			TTL: time.Minute})
		lost <- err
	}()
	s.waitFor(t, 1)
	cancel()
	if err := <-lost; err == nil || errors.Is(err, leasestore.ErrRefused) ||
		errors.Is(err, leasestore.ErrConflict) {
		t.Errorf("without an answer: %v", err)
	}
	p.cut()
	got, now, err := store.Load(t.Context(), name)
	for err != nil && t.Context().Err() == nil { // until it is connected again
		got, now, err = store.Load(t.Context(), name)
	}
	if got.Nonce != "n" || now == ver {
		t.Errorf("got %+v %q", got, now)
	}
	_, err = store.Swap(t.Context(), name, now, leasestore.Record{Token: got.Token})
	must(t, err)
	s.waitFor(t, 0)
	l := s.lock()
	must(t, l.Lock())
	must(t, l.Unlock())
}

// TestDeletedNodes: tokens continue after everything is deleted, and a version of the deleted node
// is invalid for another node with the same data version.
func TestDeletedNodes(t *testing.T) {
	s := beside(t)
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	must(t, g.Release(t.Context()))
	_, blank, err := s.store.Load(t.Context(), name)
	must(t, err)
	must(t, deleteAll(s.conn, s.path))
	got, ver, err := s.store.Load(t.Context(), name)
	if err != nil || ver != "" || got.Token < g.Token() {
		t.Errorf("tokens begin again: %+v %q %v", got, ver, err)
	}
	again, err := faulty.Try(t, s.lease)
	must(t, err)
	if again.Token() <= g.Token() {
		t.Errorf("token %d after %d", again.Token(), g.Token())
	}
	must(t, again.Release(t.Context()))
	if _, err := s.store.Swap(t.Context(), name, blank, leasestore.Record{Owner: "o", Nonce: "n",
		Token: 1, TTL: time.Second}); !errors.Is(err, leasestore.ErrConflict) {
		t.Errorf("on a version of the deleted node: %v", err)
	}
}
