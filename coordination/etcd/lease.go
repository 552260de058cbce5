package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/silence"
)

// leases are the etcd leases of the sessions that use this store. Only the writes of their sessions
// keep them alive, so the etcd lease of an idle session expires.
type leases struct {
	mu struct {
		sync.Mutex
		of map[leaseKey]*lease
	}
}

// leaseKey separates the etcd leases of different sessions, and of different tenures of a session.
type leaseKey struct {
	nonce string
	ttl   time.Duration // of the records
	// tenure of the session, for its own record and the leases that are held through it: they live
	// and end together. 0: for a key that depends on no session.
	tenure coordination.Token
}

// seconds returns the TTL of the etcd lease. It is twice that of the records: several records
// written within a short time need one keepalive, and on a slow way others still find the record of
// a session when they may take its leases. Once it is gone, they would wait for the TTL again.
func (k leaseKey) seconds() int64 { return 2 * int64((k.ttl+time.Second-1)/time.Second) }

// outlives reports whether an etcd lease that was kept alive at time prolonged still has the TTL of
// the records left. It adds 1/4 to the elapsed time of our clock, which is more than the rates of
// clocks differ. It also checks the wall clock, because the monotonic clock stops while the machine
// is suspended.
func (k leaseKey) outlives(prolonged, now time.Time) bool {
	ago := max(now.Sub(prolonged), now.Round(0).Sub(prolonged.Round(0)))
	return ago+ago/4+k.ttl <= time.Duration(k.seconds())*time.Second
}

// lease is one etcd lease; leases.mu guards all fields but making.
type lease struct {
	making    chan struct{}    // held by the goroutine that grants or prolongs the lease
	id        clientv3.LeaseID // 0: there is none
	prolonged time.Time        // when the last successful grant or keepalive was requested
	used      time.Time
	ended     bool // there was one, and it has ended
}

func (e *lease) lock(ctx context.Context) error {
	select {
	case e.making <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *lease) unlock() { <-e.making }

// alive returns an etcd lease for k that lives for the records' TTL from some moment after the
// call: the present lease, kept alive if necessary, or a new one.
func (l *leases) alive(ctx context.Context, client *clientv3.Client,
	k leaseKey) (clientv3.LeaseID, error) {
	e := l.entry(k)
	if id, ok := l.lives(k, e); ok {
		return id, nil
	}
	if err := e.lock(ctx); err != nil {
		return 0, err
	}
	defer e.unlock()
	id, err := l.prolong(ctx, client, k, e)
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return l.grant(ctx, client, k, e)
	}
	return id, err
}

// same is like alive, but never grants a new lease. It returns ErrLeaseNotFound if the lease has
// ended, and another error if the lease is not known here.
func (l *leases) same(ctx context.Context, client *clientv3.Client,
	k leaseKey) (clientv3.LeaseID, error) {
	e := l.entry(k)
	if id, ok := l.lives(k, e); ok {
		return id, nil
	}
	if err := e.lock(ctx); err != nil {
		return 0, err
	}
	defer e.unlock()
	if now := l.state(e); now.id == 0 && !now.ended {
		return 0, errNotKnown
	}
	return l.prolong(ctx, client, k, e)
}

// errNotKnown is returned when a renewal uses a different Store than the acquire, or comes long
// after it was due.
var errNotKnown = errors.New("etcd lease not known to this store")

// joined returns the etcd lease of a tenure without prolonging it, because other writes do that. It
// grants a new lease if none is known, and returns ErrLeaseNotFound if the lease is known to have
// ended.
func (l *leases) joined(ctx context.Context, client *clientv3.Client,
	k leaseKey) (clientv3.LeaseID, error) {
	e := l.entry(k)
	if now := l.state(e); now.id != 0 {
		return now.id, nil
	}
	if err := e.lock(ctx); err != nil {
		return 0, err
	}
	defer e.unlock()
	switch now := l.state(e); {
	case now.id != 0:
		return now.id, nil
	case now.ended:
		return 0, rpctypes.ErrLeaseNotFound
	}
	return l.grant(ctx, client, k, e)
}

// lives returns the etcd lease of e, if it has the TTL of the records left.
func (l *leases) lives(k leaseKey, e *lease) (clientv3.LeaseID, bool) {
	now := l.state(e)
	return now.id, now.id != 0 && k.outlives(now.prolonged, time.Now())
}

// ahead keeps an etcd lease alive in the background, if that may not have the TTL of the records
// left at the next write: on a slow way a keepalive and then a write would take too long. It ends
// with the client.
func (l *leases) ahead(client *clientv3.Client, k leaseKey) {
	e := l.entry(k)
	select {
	case e.making <- struct{}{}:
	default:
		return // another goroutine is at it
	}
	now := l.state(e)
	if now.id == 0 || k.outlives(now.prolonged, time.Now().Add(k.ttl/2)) {
		e.unlock()
		return
	}
	go func() {
		defer e.unlock()
		ctx, cancel := context.WithTimeout(client.Ctx(), k.ttl)
		defer cancel()
		// After an error, the next write tries again.
		_, _ = l.keepAlive(silence.Patiently(ctx, k.ttl, k.ttl), client, k, e)
	}()
}

// prolong keeps the etcd lease of e alive if necessary. The caller has locked e.
func (l *leases) prolong(ctx context.Context, client *clientv3.Client, k leaseKey,
	e *lease) (clientv3.LeaseID, error) {
	switch now := l.state(e); {
	case now.id == 0:
		return 0, rpctypes.ErrLeaseNotFound
	case k.outlives(now.prolonged, time.Now()):
		return now.id, nil
	}
	return l.keepAlive(ctx, client, k, e)
}

func (l *leases) keepAlive(ctx context.Context, client *clientv3.Client, k leaseKey,
	e *lease) (clientv3.LeaseID, error) {
	now, asked := l.state(e), time.Now()
	r, err := client.KeepAliveOnce(ctx, now.id)
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		l.forget(k, now.id)
		return 0, err
	case err != nil:
		return 0, err
	}
	return l.keep(e, now.id, asked, r.TTL, k)
}

// grant makes a new etcd lease for e. The caller has locked e.
func (l *leases) grant(ctx context.Context, client *clientv3.Client, k leaseKey,
	e *lease) (clientv3.LeaseID, error) {
	asked := time.Now()
	r, err := client.Grant(ctx, k.seconds())
	if err != nil {
		return 0, err
	}
	return l.keep(e, r.ID, asked, r.TTL, k)
}

func (l *leases) keep(e *lease, id clientv3.LeaseID, asked time.Time, seconds int64,
	k leaseKey) (clientv3.LeaseID, error) {
	if seconds < k.seconds() {
		return 0, fmt.Errorf("etcd granted a lease of %ds, of %ds requested", seconds, k.seconds())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id, e.prolonged = id, asked
	return id, nil
}

// leaseState is a copy of the fields of a lease that leases.mu guards.
type leaseState struct {
	id        clientv3.LeaseID
	prolonged time.Time
	ended     bool
}

func (l *leases) state(e *lease) leaseState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return leaseState{e.id, e.prolonged, e.ended}
}

// entry returns the lease of k, and forgets leases that have certainly expired.
func (l *leases) entry(k leaseKey) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	e, ok := l.mu.of[k]
	if !ok {
		for old, e := range l.mu.of {
			if now.Sub(e.used) > 2*time.Duration(old.seconds())*time.Second+time.Minute {
				delete(l.mu.of, old)
			}
		}
		e = &lease{making: make(chan struct{}, 1)}
		l.mu.of[k] = e
	}
	e.used = now
	return e
}

// forget records that an etcd lease has ended.
func (l *leases) forget(k leaseKey, id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.mu.of[k]; ok && e.id == id {
		e.id, e.ended = 0, true
	}
}
