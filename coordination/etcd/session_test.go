//go:build stores

package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/leasestore"
)

// session is a session with its own client, whose end is like that of a process.
type session struct {
	*coordination.Session
	t      *testing.T
	client *clientv3.Client
	store  etcd.Store
}

func newSession(t *testing.T, prefix string, cfg coordination.Config,
	o ...grpc.DialOption) *session {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: server(t), Logger: quiet,
		DialOptions: o})
	must(t, err)
	store := open(t, client, prefix)
	opened, err := coordination.Open(store, cfg)
	must(t, err)
	s := &session{opened, t, client, store}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx)
		_ = client.Close()
	})
	return s
}

// crash cuts the session off from etcd.
func (s *session) crash() {
	_ = s.client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Close(ctx)
}

// holdMany acquires n leases concurrently.
func (s *session) holdMany(n int) []*coordination.Grant {
	s.t.Helper()
	grants := make([]*coordination.Grant, n)
	var wg sync.WaitGroup
	for i := range grants {
		wg.Go(func() {
			var err error
			if grants[i], err = s.Lease(shard(i)).Acquire(s.t.Context()); err != nil {
				s.t.Errorf("%s: %v", shard(i), err)
			}
		})
	}
	wg.Wait()
	if s.t.Failed() {
		s.t.FailNow()
	}
	return grants
}

func shard(i int) string { return fmt.Sprint("shard-", i) }

// record returns the session's own record, and its name.
func (s *session) record(lease string) (leasestore.Record, string) {
	s.t.Helper()
	held, _, err := s.store.Load(s.t.Context(), lease)
	must(s.t, err)
	name := leasestore.SessionRecords + held.Nonce
	rec, _, err := s.store.Load(s.t.Context(), name)
	must(s.t, err)
	return rec, name
}

// etcdLeases returns the etcd leases of the keys below a prefix, and the number of keys on each.
func etcdLeases(t *testing.T, client *clientv3.Client, prefix string) map[int64]int {
	t.Helper()
	r, err := client.Get(t.Context(), prefix, clientv3.WithPrefix())
	must(t, err)
	on := map[int64]int{}
	for _, kv := range r.Kvs {
		on[kv.Lease]++
	}
	return on
}

// steady renews often, and loses its leases only after a long time without an answer.
func steady() coordination.Config {
	return coordination.Config{TTL: 30 * time.Second, RenewInterval: 500 * time.Millisecond,
		OperationTimeout: 10 * time.Second,
		RetryInterval:    500 * time.Millisecond, Drain: time.Second}
}

// TestSession_ThousandLeasesCostOneRenewal counts the requests of the client during several
// renewals of the session record.
func TestSession_ThousandLeasesCostOneRenewal(t *testing.T) {
	const many, intervals = 1000, 9
	var writes, prolonged atomic.Int32
	keys := prefix(t)
	cfg := steady()
	cfg.TTL, cfg.RenewInterval, cfg.OperationTimeout = 15*time.Second,
		2500*time.Millisecond, 5*time.Second
	s := newSession(t, keys, cfg, counted(&writes, &prolonged)...)
	grants := s.holdMany(many)
	observer := newSession(t, keys, cfg)
	_, name := s.record(shard(0))
	attempt := func() uint64 {
		rec, _, err := observer.store.Load(t.Context(), name)
		must(t, err)
		return rec.Attempt
	}
	sent, streams, first := writes.Load()+prolonged.Load(), prolonged.Load(), attempt()
	last := first
	for last < first+intervals {
		wait(t.Context(), 100*time.Millisecond)
		last = attempt()
	}
	sent = writes.Load() + prolonged.Load() - sent
	if most := 2 * int32(last-first+1); sent > most {
		t.Errorf("%d requests in %d intervals, at most %d", sent, last-first, most)
	}
	for _, g := range grants {
		must(t, g.Check())
	}
	on := etcdLeases(t, observer.client, keys)
	if len(on) != 2 || on[0] != many { // the records are on no etcd lease
		t.Errorf("keys on etcd leases: %v", on)
	}
	t.Logf("%d leases: %d requests in %d intervals, %d of them for the etcd lease", many, sent,
		last-first, prolonged.Load()-streams)
}

// TestSession_MutexWaitsForTheRenewalOfTheSession waits longer than an etcd lease lasts without
// keepalives.
func TestSession_MutexWaitsForTheRenewalOfTheSession(t *testing.T) {
	keys := prefix(t)
	cfg := steady()
	cfg.TTL, cfg.OperationTimeout = 6*time.Second, 2*time.Second
	s := newSession(t, keys, cfg)
	grants := s.holdMany(5)
	others := connect(t, server(t))
	locker, err := concurrency.NewSession(others)
	must(t, err)
	defer func() { _ = locker.Close() }()
	lock := func(i int) <-chan error {
		locked := make(chan error, 1)
		go func() {
			locked <- concurrency.NewMutex(locker, s.store.LockName(shard(i))).Lock(t.Context())
		}()
		return locked
	}
	first, second := lock(0), lock(1)
	on := etcdLeases(t, others, s.store.LockName(shard(0))+"/holder")
	if len(on) != 1 || on[0] != 0 {
		t.Fatalf("the holder's key is on %v", on)
	}
	wait(t.Context(), 11*time.Second) // the etcd lease lasts 9
	must(t, grants[0].Check())
	select {
	case err := <-first:
		t.Fatalf("locked beside a holder: %v", err)
	default:
	}
	must(t, grants[0].Release(t.Context()))
	must(t, <-first)
	must(t, grants[1].Check())
	select {
	case err := <-second:
		t.Fatalf("locked beside a holder: %v", err)
	default:
	}
	s.crash()
	must(t, <-second)
	// Wait until the record of the crashed session is gone.
	for len(etcdLeases(t, others, keys+leasestore.SessionRecords)) != 0 {
		wait(t.Context(), 50*time.Millisecond)
	}
}

// TestSession_RevokedLeaseEndsAll: an operator who revokes the etcd lease of a session ends all its
// leases. Leases that it acquires later are on another etcd lease.
func TestSession_RevokedLeaseEndsAll(t *testing.T) {
	const many = 20
	keys := prefix(t)
	s, other := newSession(t, keys, steady()), newSession(t, keys, steady())
	grants := s.holdMany(many)
	id := s.etcdLease(shard(0))
	for i := range many {
		if got := s.etcdLease(shard(i)); got != id {
			t.Fatalf("%s is on %x, not on %x", shard(i), got, id)
		}
	}
	_, err := other.client.Revoke(t.Context(), id)
	must(t, err)
	for _, g := range grants {
		<-g.Context().Done()
		if lost, ok := errors.AsType[*coordination.LostError](context.Cause(g.Context())); !ok ||
			lost.Why != coordination.RecordDeleted {
			t.Errorf("%v: %v", g, context.Cause(g.Context()))
		}
	}
	for i, g := range other.holdMany(many) {
		if g.Token() <= grants[i].Token() {
			t.Errorf("%v after %v", g, grants[i])
		}
		must(t, g.Release(t.Context()))
	}
	s.holdMany(many)
	if again := s.etcdLease(shard(0)); again == id || again != s.etcdLease(shard(many-1)) {
		t.Errorf("on %x after %x", again, id)
	}
}

func (s *session) etcdLease(lease string) clientv3.LeaseID {
	s.t.Helper()
	r, err := s.client.Get(s.t.Context(), s.store.LockName(lease)+"/holder")
	must(s.t, err)
	if len(r.Kvs) != 1 || r.Kvs[0].Lease == 0 {
		s.t.Fatalf("%s: %v", lease, r.Kvs)
	}
	return clientv3.LeaseID(r.Kvs[0].Lease)
}

// TestSwap_NothingFollowsTheEtcdLeaseOfATenure: after the etcd lease of a tenure has ended, neither
// the record of its session nor a lease held through it is written on another one.
func TestSwap_NothingFollowsTheEtcdLeaseOfATenure(t *testing.T) {
	client := connect(t, server(t))
	s := open(t, client, prefix(t))
	const own = leasestore.SessionRecords + "n"
	swap := func(name string, old leasestore.Version,
		r leasestore.Record) (leasestore.Version, error) {
		r.Nonce, r.TTL = "n", time.Minute
		return s.Swap(t.Context(), name, old, r)
	}
	etcdLease := func(name string) clientv3.LeaseID {
		r, err := client.Get(t.Context(), s.LockName(name)+"/holder")
		must(t, err)
		return clientv3.LeaseID(r.Kvs[0].Lease)
	}
	ver, err := swap(own, "", leasestore.Record{Token: 7, Attempt: 1})
	must(t, err)
	held, err := swap("a", "", leasestore.Record{Token: 1, Attempt: 1, Session: 7})
	must(t, err)
	id := etcdLease(own)
	if etcdLease("a") != id {
		t.Error("the lease is on an etcd lease of its own")
	}
	_, err = client.Revoke(t.Context(), id)
	must(t, err)
	if _, err := swap("b", "", leasestore.Record{Token: 1, Attempt: 1, Session: 7}); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("a claim: %v", err)
	}
	if _, err := swap(own, ver, leasestore.Record{Token: 7, Attempt: 2}); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Errorf("a renewal: %v", err)
	}
	rec, now, err := s.Load(t.Context(), "a")
	if rec.Nonce != "" || now == held || err != nil {
		t.Errorf("still held: %v %v", rec, err)
	}
	rec, now, err = s.Load(t.Context(), own)
	if rec.Nonce != "" || err != nil {
		t.Fatalf("still there: %v %v", rec, err)
	}
	ver, err = swap(own, now, leasestore.Record{Token: 8, Attempt: 1})
	must(t, err)
	if _, err := swap(own, ver, leasestore.Record{Token: 8, Attempt: 2}); err != nil {
		t.Errorf("renewal of the next tenure: %v", err)
	}
	if etcdLease(own) == id {
		t.Error("an etcd lease came back")
	}
	if _, err := swap("b", "", leasestore.Record{Token: 1, Attempt: 2, Session: 7}); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("a late claim: %v", err)
	}
}

// TestSwap_ASessionIsNotRenewedOnAnotherEtcdLease: this holds for a store that does not know the
// etcd lease any more, and for a key that was written by hand.
func TestSwap_ASessionIsNotRenewedOnAnotherEtcdLease(t *testing.T) {
	client := connect(t, server(t))
	keys := prefix(t)
	s := open(t, client, keys)
	const own = leasestore.SessionRecords + "n"
	rec := leasestore.Record{Nonce: "n", Token: 7, Attempt: 1, TTL: time.Minute}
	ver, err := s.Swap(t.Context(), own, "", rec)
	must(t, err)
	rec.Attempt++
	if _, err := open(t, client, keys).Swap(t.Context(), own, ver, rec); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("by another process: %v", err)
	}
	_, err = client.Put(t.Context(), s.LockName(own)+"/holder", "n")
	must(t, err)
	if _, err := s.Swap(t.Context(), own, ver, rec); !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("beside a key on no etcd lease: %v", err)
	}
}

// TestForever_KeepsOthersOutUntilAnOperatorActs: the holder's key is on no etcd lease.
func TestForever_KeepsOthersOutUntilAnOperatorActs(t *testing.T) {
	keys := prefix(t)
	cfg := steady()
	cfg.Forever = true
	dead, operator := newSession(t, keys, cfg), newSession(t, keys, steady())
	g, err := dead.Lease(name).Acquire(t.Context())
	must(t, err)
	dead.crash()
	if on := etcdLeases(t, operator.client, dead.store.LockName(name)); len(on) != 1 || on[0] != 2 {
		t.Errorf("its keys are on %v", on)
	}
	locker, err := concurrency.NewSession(operator.client)
	must(t, err)
	defer func() { _ = locker.Close() }()
	m := concurrency.NewMutex(locker, dead.store.LockName(name))
	if err := m.TryLock(t.Context()); !errors.Is(err, concurrency.ErrLocked) {
		t.Errorf("a mutex: %v", err)
	}
	_, err = operator.Lease(name).TryAcquire(t.Context())
	held, ok := errors.AsType[*coordination.HeldError](err)
	if !ok || !held.Holder.Forever || held.Holder.Token != g.Token() {
		t.Fatalf("a contender: %v", err)
	}
	must(t, operator.Lease(name).ForceRelease(t.Context(), g.Token()))
	must(t, m.Lock(t.Context()))
	must(t, m.Unlock(t.Context()))
	_, err = operator.Lease(name).Acquire(t.Context())
	must(t, err)
}

// TestRemove_LeavesNoKey: a closed session leaves no key.
func TestRemove_LeavesNoKey(t *testing.T) {
	keys := prefix(t)
	s, other := newSession(t, keys, steady()), connect(t, server(t))
	for _, g := range s.holdMany(3) {
		must(t, g.Release(t.Context()))
	}
	must(t, s.Close(t.Context()))
	r, err := other.Get(t.Context(), keys, clientv3.WithPrefix())
	must(t, err)
	for _, kv := range r.Kvs {
		if !strings.HasPrefix(string(kv.Key), keys+"shard-") || strings.HasSuffix(string(kv.Key),
			"/holder") {
			t.Errorf("left: %s", kv.Key)
		}
	}
	if len(r.Kvs) != 3 {
		t.Errorf("%d keys", len(r.Kvs))
	}
}

// TestSession_ADeletedRecordFreesTheLease: an operator deletes the record of a lease, but not the
// holder's key beside it, as "etcdctl del" does. The lease is free when the holder has noticed,
// although its session lives on.
func TestSession_ADeletedRecordFreesTheLease(t *testing.T) {
	keys := prefix(t)
	cfg := coordination.Config{TTL: 2 * time.Second}
	s, other := newSession(t, keys, cfg), newSession(t, keys, cfg)
	grants := s.holdMany(2)
	_, err := other.client.Delete(t.Context(), s.store.LockName(shard(0)))
	must(t, err)
	<-grants[0].Context().Done()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	next, err := other.Lease(shard(0)).Acquire(ctx)
	if err != nil {
		t.Fatalf("while the former holder's session lives: %v", err)
	}
	if next.Token() <= grants[0].Token() {
		t.Errorf("%v after %v", next, grants[0])
	}
	must(t, grants[1].Check())
}

// TestSession_ALostAnswerAndADeletedRecord loses the answer of etcd to the write of a session's
// first record, and ends the etcd lease of that record, as etcd does when a session is silent. The
// session asks for a larger token, so that two of its records never have the same one.
func TestSession_ALostAnswerAndADeletedRecord(t *testing.T) {
	keys := prefix(t)
	client := connect(t, server(t))
	store := open(t, client, keys)
	var lost atomic.Pointer[leasestore.Record]
	lose := func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, conn, o...)
		if err != nil || lost.Load() != nil {
			return err
		}
		all, err := client.Get(ctx, keys, clientv3.WithPrefix())
		if err != nil {
			return err
		}
		for _, kv := range all.Kvs {
			_, nonce, is := strings.Cut(string(kv.Key), leasestore.SessionRecords)
			if !is || kv.Lease == 0 || strings.HasSuffix(nonce, "/holder") {
				continue
			}
			rec, _, err := store.Load(ctx, leasestore.SessionRecords+nonce)
			if err != nil || rec.Nonce == "" || !lost.CompareAndSwap(nil, &rec) {
				continue
			}
			_, _ = client.Revoke(ctx, clientv3.LeaseID(kv.Lease))
			return status.Error(codes.Unavailable, "the answer is lost")
		}
		return nil
	}
	s := newSession(t, keys, coordination.Config{TTL: 2 * time.Second},
		grpc.WithChainUnaryInterceptor(lose))
	grants := s.holdMany(1)
	first := lost.Load()
	if first == nil {
		t.Fatal("no answer was lost")
	}
	if rec, _ := s.record(shard(0)); rec.Token <= first.Token {
		t.Errorf("the session asked twice for a token: %+v after %+v", rec, *first)
	}
	must(t, grants[0].Check())
}
