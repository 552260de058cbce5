//go:build stores

package etcd_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
)

const name = "bil/ling" // needs escaping

// side is a session of this module beside clients of etcd's own lock recipes.
type side struct {
	client *clientv3.Client
	store  etcd.Store
	lease  *coordination.Lease
	locker *concurrency.Session
}

func beside(t *testing.T) side {
	client := connect(t, server(t))
	store := open(t, client, prefix(t))
	session, err := coordination.Open(store, coordination.Config{TTL: time.Minute,
		RetryInterval: 10 * time.Second, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close(context.Background()) })
	locker, err := concurrency.NewSession(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locker.Close() })
	return side{client, store, session.Lease(name), locker}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestInterop_MutexExcludesUs(t *testing.T) {
	s := beside(t)
	before, err := faulty.Try(t, s.lease)
	must(t, err)
	must(t, before.Release(t.Context()))
	m := concurrency.NewMutex(s.locker, s.store.LockName(name))
	must(t, m.Lock(t.Context()))
	for range 2 {
		_, err = faulty.Try(t, s.lease)
		held, ok := errors.AsType[*coordination.HeldError](err)
		if !ok || !strings.Contains(held.Holder.Owner, m.Key()) {
			t.Fatalf("got %v, want the mutex %s as holder", err, m.Key())
		}
		if created := m.Header().Revision; held.Holder.Token <= before.Token() ||
			int64(held.Holder.Token) > created {
			t.Errorf("token %d, want above %d and up to %d", held.Holder.Token, before.Token(),
				created)
		}
	}
	acquired := make(chan error, 1)
	var g *coordination.Grant
	go func() {
		var err error
		g, err = s.lease.Acquire(t.Context())
		acquired <- err
	}()
	must(t, m.Unlock(t.Context()))
	must(t, <-acquired)
	if int64(g.Token()) <= m.Header().Revision {
		t.Errorf("token %d, not above that of the mutex, %d", g.Token(), m.Header().Revision)
	}
	must(t, g.Release(t.Context()))
}

func TestInterop_WeExcludeMutex(t *testing.T) {
	s := beside(t)
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	m := concurrency.NewMutex(s.locker, s.store.LockName(name))
	if err := m.TryLock(t.Context()); !errors.Is(err, concurrency.ErrLocked) {
		t.Fatalf("got %v", err)
	}
	locked := make(chan error, 1)
	go func() { locked <- m.Lock(t.Context()) }()
	s.waitFor(t, 2) // it queues behind our key, which must not affect it
	_, ver, err := s.store.Load(t.Context(), name)
	must(t, err)
	if _, err := s.store.Swap(t.Context(), name, ver, leasestore.Record{Owner: "o", Nonce: "other",
		Token: g.Token() + 1, TTL: time.Minute}); !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("took the lease past a lock that waits: %v", err)
	}
	must(t, g.Check())
	must(t, g.Release(t.Context()))
	must(t, <-locked)
	_, err = faulty.Try(t, s.lease)
	if !errors.Is(err, coordination.ErrHeld) {
		t.Errorf("beside the mutex: %v", err)
	}
	must(t, m.Unlock(t.Context()))
}

// waitFor waits until there are n lock keys.
func (s side) waitFor(t *testing.T, n int64) {
	t.Helper()
	for {
		r, err := s.client.Get(t.Context(), s.store.LockName(name)+"/", clientv3.WithPrefix(),
			clientv3.WithCountOnly())
		must(t, err)
		if r.Count == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestInterop_Election(t *testing.T) {
	s := beside(t)
	e := concurrency.NewElection(s.locker, s.store.LockName(name))
	must(t, e.Campaign(t.Context(), "candidate"))
	if _, err := faulty.Try(t, s.lease); !errors.Is(err, coordination.ErrHeld) {
		t.Fatalf("beside the leader: %v", err)
	}
	must(t, e.Resign(t.Context()))
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	leads := make(chan error, 1)
	go func() { leads <- e.Campaign(t.Context(), "candidate") }()
	s.waitFor(t, 2)
	must(t, g.Release(t.Context()))
	must(t, <-leads)
	must(t, e.Resign(t.Context()))
}

// TestInterop_Etcdctl lets `etcdctl lock` run a command while it holds the lock.
func TestInterop_Etcdctl(t *testing.T) {
	ctl := os.Getenv("CONCORD_ETCDCTL")
	if ctl == "" {
		t.Fatal("CONCORD_ETCDCTL names no program: run make stores")
	}
	s := beside(t)
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	out := t.TempDir() + "/token"
	cmd := exec.Command(ctl, "--endpoints", strings.Join(server(t), ","), "lock",
		s.store.LockName(name), "--", "sh", "-c", "echo locked > "+out+"; sleep 1")
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	s.waitFor(t, 2)
	if _, err := os.Stat(out); err == nil {
		t.Error("the command ran beside a holder")
	}
	must(t, g.Release(t.Context()))
	for _, err := os.Stat(out); err != nil; _, err = os.Stat(out) {
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := faulty.Try(t, s.lease); !errors.Is(err, coordination.ErrHeld) {
		t.Errorf("beside etcdctl: %v", err)
	}
	must(t, cmd.Wait())
	g, err = s.lease.Acquire(t.Context())
	must(t, err)
	must(t, g.Release(t.Context()))
}

// TestTokens_GrowOverLocksThatNobodyHasSeen: the session claims a lease that it has released
// without another read, and a mutex was held meanwhile.
func TestTokens_GrowOverLocksThatNobodyHasSeen(t *testing.T) {
	s := beside(t)
	var last coordination.Token
	for range 3 {
		g, err := faulty.Try(t, s.lease)
		must(t, err)
		if g.Token() <= last {
			t.Errorf("%v after a lock with %d", g, last)
		}
		h, err := s.lease.Holder(t.Context())
		if h.Token != g.Token() || err != nil {
			t.Errorf("%v is shown as %v, %v", g, h, err)
		}
		must(t, g.Release(t.Context()))
		m := concurrency.NewMutex(s.locker, s.store.LockName(name))
		must(t, m.Lock(t.Context()))
		if last = coordination.Token(m.Header().Revision); last <= g.Token() {
			t.Errorf("a lock with %d after %v", last, g)
		}
		must(t, m.Unlock(t.Context()))
	}
}

// TestTokens_GrowOverALockBetweenLookAndClaim tests a lock that the record does not reflect.
func TestTokens_GrowOverALockBetweenLookAndClaim(t *testing.T) {
	s := beside(t)
	rec, ver, err := s.store.Load(t.Context(), name)
	must(t, err)
	m := concurrency.NewMutex(s.locker, s.store.LockName(name))
	must(t, m.Lock(t.Context()))
	must(t, m.Unlock(t.Context()))
	ver, err = s.store.Swap(t.Context(), name, ver, leasestore.Record{
		Nonce: "n", Token: rec.Token + 1, Attempt: 1, TTL: time.Minute})
	must(t, err)
	if got := s.store.TokenOf(ver); int64(got) <= m.Header().Revision {
		t.Errorf("token %v after a lock with %d", got, m.Header().Revision)
	}
}

// TestStaleVersions_StayDead: a version that was shown before a lock of another program stays
// invalid after that lock is gone.
func TestStaleVersions_StayDead(t *testing.T) {
	s := beside(t)
	rec := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, TTL: time.Minute}
	free, err := s.store.Swap(t.Context(), name, "", leasestore.Record{Token: 1})
	must(t, err)
	m := concurrency.NewMutex(s.locker, s.store.LockName(name))
	must(t, m.Lock(t.Context()))
	_, during, err := s.store.Load(t.Context(), name)
	must(t, err)
	must(t, m.Unlock(t.Context()))
	for _, old := range []leasestore.Version{free, during} {
		if _, err := s.store.Swap(t.Context(), name, old, rec); !errors.Is(err,
			leasestore.ErrConflict) {
			t.Errorf("version %q: %v", old, err)
		}
	}
	got, now, err := s.store.Load(t.Context(), name)
	must(t, err)
	if got.Nonce != "" || int64(got.Token) < m.Header().Revision {
		t.Errorf("after the mutex: %+v", got)
	}
	_, err = s.store.Swap(t.Context(), name, now, rec)
	must(t, err)
}

// TestExpiredHolder_IsFreeAtOnce: when etcd has expired the holder's key, the lease is free even
// for a contender that has not seen it before, and the old holder cannot renew.
func TestExpiredHolder_IsFreeAtOnce(t *testing.T) {
	s := beside(t)
	rec := leasestore.Record{Owner: "o", Nonce: "dead", Token: 5, TTL: time.Second}
	ver, err := s.store.Swap(t.Context(), name, "", rec)
	must(t, err)
	s.waitFor(t, 0)
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	if g.Token() <= rec.Token {
		t.Errorf("token %d after %d", g.Token(), rec.Token)
	}
	if _, err := s.store.Swap(t.Context(), name, ver, rec); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("renewed after expiry: %v", err)
	}
	must(t, g.Release(t.Context()))
}

// TestDeletedKeys: deleting only the record does not free the lease for new contenders, and tokens
// continue after everything is deleted.
func TestDeletedKeys(t *testing.T) {
	s := beside(t)
	g, err := faulty.Try(t, s.lease)
	must(t, err)
	base := s.store.LockName(name)
	_, err = s.client.Delete(t.Context(), base)
	must(t, err)
	rec := leasestore.Record{Owner: "o", Nonce: "newcomer", Token: g.Token() + 1, TTL: time.Minute}
	if _, err := s.store.Swap(t.Context(), name, "", rec); !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("absence was freedom: %v", err)
	}
	_, err = s.client.Delete(t.Context(), base+"/", clientv3.WithPrefix())
	must(t, err)
	next, ver, err := s.store.Load(t.Context(), name)
	if err != nil || ver != "" || next.Token < g.Token() {
		t.Errorf("tokens begin again: %+v %q %v", next, ver, err)
	}
	must(t, g.Release(t.Context()))
}
