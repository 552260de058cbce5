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
)

// leases are the etcd leases of the sessions that use this store. They are kept alive by the writes of
// their sessions alone, so that one which does nothing more lets them expire.
type leases struct {
	mu struct {
		sync.Mutex
		of map[leaseKey]*lease
	}
}

// leaseKey makes sessions independent of each other, and the tenures of a session.
type leaseKey struct {
	nonce string
	ttl   time.Duration // of the records
	// tenure of the session, for its own record and the leases that are held through it: they live and end together.
	// 0: for what goes by itself.
	tenure coordination.Token
}

// seconds is the TTL of the etcd lease: longer than that of the records by half, so that records that are
// written soon after each other need it prolonged once.
func (k leaseKey) seconds() int64 {
	least := int64((k.ttl + time.Second - 1) / time.Second)
	return least + max(least/2, 1)
}

// outlives reports whether an etcd lease that was prolonged at some time has the TTL of the records left. Our clock's
// word is taken with 1/4 on top, which is more than clocks' rates differ. The calendar clock is asked too: the other
// one stops while the machine is suspended.
func (k leaseKey) outlives(prolonged, now time.Time) bool {
	ago := max(now.Sub(prolonged), now.Round(0).Sub(prolonged.Round(0)))
	return ago+ago/4+k.ttl <= time.Duration(k.seconds())*time.Second
}

// lease is one etcd lease; all but making is guarded by leases.mu.
type lease struct {
	making    chan struct{}    // held by who makes or prolongs it
	id        clientv3.LeaseID // 0: there is none
	prolonged time.Time        // when that was asked for that has been granted
	used      time.Time
	ended     bool // there was one
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

// alive returns the etcd lease of k, which lives for the records' TTL from some moment after the call: the one
// that is there, prolonged if need be, or a new one.
func (l *leases) alive(ctx context.Context, client *clientv3.Client, k leaseKey) (clientv3.LeaseID, error) {
	e := l.entry(k)
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

// same is alive, but never a new one: ErrLeaseNotFound if it has ended, another error if it is not known here.
func (l *leases) same(ctx context.Context, client *clientv3.Client, k leaseKey) (clientv3.LeaseID, error) {
	e := l.entry(k)
	if err := e.lock(ctx); err != nil {
		return 0, err
	}
	defer e.unlock()
	if now := l.state(e); now.id == 0 && !now.ended {
		return 0, errNotKnown
	}
	return l.prolong(ctx, client, k, e)
}

// errNotKnown is told to who renews with another Store than it has acquired with, or long after it had to.
var errNotKnown = errors.New("the etcd lease is not known here")

// joined returns the etcd lease of a tenure as it is, for what others prolong; a new one if none is known, and
// ErrLeaseNotFound if it is known to have ended.
func (l *leases) joined(ctx context.Context, client *clientv3.Client, k leaseKey) (clientv3.LeaseID, error) {
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

// prolong needs e locked.
func (l *leases) prolong(ctx context.Context, client *clientv3.Client, k leaseKey, e *lease) (clientv3.LeaseID, error) {
	now, asked := l.state(e), time.Now()
	switch {
	case now.id == 0:
		return 0, rpctypes.ErrLeaseNotFound
	case k.outlives(now.prolonged, asked):
		return now.id, nil
	}
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

// grant needs e locked.
func (l *leases) grant(ctx context.Context, client *clientv3.Client, k leaseKey, e *lease) (clientv3.LeaseID, error) {
	asked := time.Now()
	r, err := client.Grant(ctx, k.seconds())
	if err != nil {
		return 0, err
	}
	return l.keep(e, r.ID, asked, r.TTL, k)
}

func (l *leases) keep(e *lease, id clientv3.LeaseID, asked time.Time, seconds int64, k leaseKey) (clientv3.LeaseID, error) {
	if seconds < k.seconds() {
		return 0, fmt.Errorf("an etcd lease of %ds was granted for %ds", seconds, k.seconds())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id, e.prolonged = id, asked
	return id, nil
}

// leaseState is a copy of what leases.mu guards.
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

// entry returns that of k, and forgets those that have certainly expired.
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

// forget notes that an etcd lease has ended.
func (l *leases) forget(k leaseKey, id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.mu.of[k]; ok && e.id == id {
		e.id, e.ended = 0, true
	}
}
