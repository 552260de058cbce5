//go:build stores

package etcd_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
)

// TestSwap_WritesNothingUnlessTheHoldersKeyLives: a record whose write was not answered is adopted
// when it is found, so it must not exist without the etcd lease on which its validity depends.
// While the store requested both at once, a history of leasetest.Live on a busy machine showed a
// claim that appeared and then vanished.
func TestSwap_WritesNothingUnlessTheHoldersKeyLives(t *testing.T) {
	var cut atomic.Bool
	var prolonged atomic.Int32
	client := intercepted(t, grpc.WithChainStreamInterceptor(
		func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string,
			stream grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
			if strings.HasSuffix(method, "/LeaseKeepAlive") {
				prolonged.Add(1)
				if cut.Load() {
					return nil, status.Error(codes.PermissionDenied, "cut by the test")
				}
			}
			return stream(ctx, d, c, method, o...)
		}))
	s := open(t, client, prefix(t))
	rec := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, Attempt: 1, TTL: 2 * time.Second}
	ver, err := s.Swap(t.Context(), name, "", rec)
	must(t, err)
	rec.Token = s.TokenOf(ver)
	for prolonged.Load() == 0 { // not every renewal prolongs it
		rec.Attempt++
		ver, err = s.Swap(t.Context(), name, ver, rec)
		must(t, err)
	}
	cut.Store(true)
	for err == nil {
		renewal := rec
		renewal.Attempt++
		var next leasestore.Version
		if next, err = s.Swap(t.Context(), name, ver, renewal); err == nil {
			rec, ver = renewal, next
		}
	}
	if !errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("got %v", err)
	}
	if got, now, err := s.Load(t.Context(), name); got != rec || now != ver || err != nil {
		t.Errorf("got %+v %q %v", got, now, err)
	}
}

// TestRequests_OfAnAcquire: an acquire is one transaction, after one read unless this session held
// the lease before, and the release is one transaction.
func TestRequests_OfAnAcquire(t *testing.T) {
	var requests, streams atomic.Int32
	client := intercepted(t, counted(&requests, &streams)...)
	session, err := coordination.Open(open(t, client, prefix(t)), patient)
	must(t, err)
	defer func() { _ = session.Close(context.Background()) }()
	// The first one also begins the session: a record of its own, and the etcd lease.
	for i, want := range []int32{5, 2, 2} {
		before := requests.Load()
		g, err := session.Lease(name).TryAcquire(t.Context())
		must(t, err)
		must(t, g.Release(t.Context()))
		if got := requests.Load() - before; got != want || streams.Load() != 0 {
			t.Errorf("acquire and release %d: %d requests, want %d; %d streams", i, got, want,
				streams.Load())
		}
	}
}

// patient gives each operation more time than a busy machine needs.
var patient = coordination.Config{TTL: 10 * time.Minute, OperationTimeout: 30 * time.Second,
	Drain: time.Second}

// counted counts requests and new streams.
func counted(requests, streams *atomic.Int32) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any,
			c *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
			requests.Add(1)
			return invoke(ctx, method, req, reply, c, o...)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc,
			c *grpc.ClientConn, method string, stream grpc.Streamer,
			o ...grpc.CallOption) (grpc.ClientStream, error) {
			streams.Add(1)
			return stream(ctx, d, c, method, o...)
		}),
	}
}

func intercepted(t *testing.T, o ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: server(t), Logger: quiet,
		DialOptions: o})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestSwap_ARenewalMakesNoOtherLease: if the etcd lease has expired or was revoked, the tenure has
// ended, and the next tenure is on another etcd lease.
func TestSwap_ARenewalMakesNoOtherLease(t *testing.T) {
	client := connect(t, server(t))
	s := open(t, client, prefix(t))
	rec := leasestore.Record{Owner: "o", Nonce: "n", Token: 1, Attempt: 1, TTL: time.Minute}
	ver, err := s.Swap(t.Context(), name, "", rec)
	must(t, err)
	rec.Token = s.TokenOf(ver)
	held, err := client.Get(t.Context(), s.LockName(name)+"/holder")
	must(t, err)
	_, err = client.Revoke(t.Context(), clientv3.LeaseID(held.Kvs[0].Lease))
	must(t, err)
	rec.Attempt++
	if _, err = s.Swap(t.Context(), name, ver, rec); !errors.Is(err, leasestore.ErrConflict) {
		t.Errorf("renewed: %v", err)
	}
	rec.Token++
	_, err = s.Swap(t.Context(), name, ver, rec)
	must(t, err)
	again, err := client.Get(t.Context(), s.LockName(name)+"/holder")
	must(t, err)
	if len(again.Kvs) != 1 || again.Kvs[0].Lease == held.Kvs[0].Lease {
		t.Errorf("got %v", again.Kvs)
	}
}

// TestReadOnly: an account that may not write sees the holder, and an expired record unchanged.
func TestReadOnly(t *testing.T) {
	c := startCluster(t)
	admin := connect(t, c.endpoints())
	for _, step := range []func() error{
		func() error { _, err := admin.UserAdd(t.Context(), "root", "r"); return err },
		func() error { _, err := admin.RoleAdd(t.Context(), "root"); return err },
		func() error { _, err := admin.UserGrantRole(t.Context(), "root", "root"); return err },
		func() error {
			return account(t, admin, "writer", clientv3.PermissionType(clientv3.PermReadWrite))
		},
		func() error {
			return account(t, admin, "viewer", clientv3.PermissionType(clientv3.PermRead))
		},
		func() error { _, err := admin.AuthEnable(t.Context()); return err },
	} {
		must(t, step())
	}
	as := func(user string) *coordination.Lease {
		client, err := clientv3.New(clientv3.Config{Endpoints: c.endpoints(), Username: user,
			Password: user, DialTimeout: 10 * time.Second, Logger: quiet})
		must(t, err)
		t.Cleanup(func() { _ = client.Close() })
		session, err := coordination.Open(open(t, client, "concord/"), coordination.Config{
			TTL: 5 * time.Minute, OperationTimeout: 30 * time.Second, Drain: time.Second})
		must(t, err)
		t.Cleanup(func() { _ = session.Close(context.Background()) })
		return session.Lease(name)
	}
	writer, viewer := as("writer"), as("viewer")
	_, err := viewer.TryAcquire(t.Context())
	if !errors.Is(err, coordination.ErrUnknown) || errors.Is(err, coordination.ErrHeld) ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("without permission: %v", err)
	}
	g, err := faulty.Try(t, writer)
	must(t, err)
	h, err := viewer.Holder(t.Context())
	if err != nil || h.Token != g.Token() || h.Owner == "" {
		t.Errorf("the viewer sees %+v, %v", h, err)
	}
	_, err = faulty.Try(t, viewer)
	if !errors.Is(err, coordination.ErrHeld) {
		t.Errorf("beside a holder: %v", err)
	}
	must(t, g.Release(t.Context()))
}

// account creates a role and a user of that name, with a permission below the prefix.
func account(t *testing.T, admin *clientv3.Client, name string, p clientv3.PermissionType) error {
	_, err := admin.UserAdd(t.Context(), name, name)
	if err == nil {
		_, err = admin.RoleAdd(t.Context(), name)
	}
	if err == nil {
		_, err = admin.RoleGrantPermission(t.Context(), name, "concord/",
			clientv3.GetPrefixRangeEnd("concord/"), p)
	}
	if err == nil {
		_, err = admin.UserGrantRole(t.Context(), name, name)
	}
	return err
}

// TestSwap_ABlankRecordLeavesTheKeyOfAHolder: where a record was deleted, a session that makes its
// own unanswered claim impossible must not free the lease of a holder that does not know yet.
func TestSwap_ABlankRecordLeavesTheKeyOfAHolder(t *testing.T) {
	client := connect(t, server(t))
	for name, swap := range map[string]func(s etcd.Store, token coordination.Token) error{
		"alone": func(s etcd.Store, token coordination.Token) error {
			_, err := s.Swap(t.Context(), "lease", "", leasestore.Record{Token: token})
			return err
		},
		"in a batch": func(s etcd.Store, token coordination.Token) error {
			return s.(leasestore.Batcher).SwapAll(t.Context(), []leasestore.Swap{
				{Name: "lease", Next: leasestore.Record{Token: token}}})[0].Err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t, client, prefix(t))
			v, err := store.Swap(t.Context(), "lease", "", leasestore.Record{Owner: "a", Nonce: "a",
				Token: 1, Attempt: 1, TTL: time.Minute})
			must(t, err)
			token := store.(leasestore.TokenGiver).TokenOf(v)
			key := store.LockName("lease")
			_, err = client.Delete(t.Context(), key)
			must(t, err)
			if err := swap(store, token+1); !errors.Is(err, leasestore.ErrRefused) {
				t.Errorf("by another: %v", err)
			}
			if r, err := client.Get(t.Context(), key+"/holder"); err != nil || r.Count != 1 {
				t.Errorf("%d keys of the holder: %v", r.Count, err)
			}
			must(t, swap(store, token))
			if r, err := client.Get(t.Context(), key+"/holder"); err != nil || r.Count != 0 {
				t.Errorf("%d keys of the holder: %v", r.Count, err)
			}
			if err := swap(store, token); !errors.Is(err, leasestore.ErrConflict) {
				t.Errorf("over a record: %v", err)
			}
		})
	}
}

// TestSwap_ABlankRecordOfASessionFreesItsKey: no other session writes that record, so a session
// whose record was deleted need not wait until its key has expired.
func TestSwap_ABlankRecordOfASessionFreesItsKey(t *testing.T) {
	client := connect(t, server(t))
	store := open(t, client, prefix(t))
	const name = leasestore.SessionRecords + "a"
	_, err := store.Swap(t.Context(), name, "", leasestore.Record{Owner: "a", Nonce: "a", Token: 1,
		Attempt: 1, TTL: time.Minute})
	must(t, err)
	key := store.LockName(name)
	_, err = client.Delete(t.Context(), key)
	must(t, err)
	_, err = store.Swap(t.Context(), name, "", leasestore.Record{Token: 1})
	must(t, err)
	if r, err := client.Get(t.Context(), key+"/holder"); err != nil || r.Count != 0 {
		t.Errorf("%d keys of the holder: %v", r.Count, err)
	}
}
