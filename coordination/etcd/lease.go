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

// leaseKey makes sessions independent of each other.
type leaseKey struct {
	nonce string
	ttl   time.Duration // of the records
}

func keyOf(r coordination.Record) leaseKey { return leaseKey{r.Nonce, r.TTL} }

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

type lease struct {
	making    chan struct{} // held by who makes or prolongs it
	id        clientv3.LeaseID
	prolonged time.Time // when that was asked for that has been granted
	used      time.Time // id, prolonged and used are guarded by leases.mu
}

// alive returns the etcd lease for a holder's record, which lives for the record's TTL from some moment
// after the call.
func (l *leases) alive(ctx context.Context, client *clientv3.Client, r coordination.Record) (clientv3.LeaseID, error) {
	k := keyOf(r)
	e := l.entry(k)
	select {
	case e.making <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-e.making }()
	id, prolonged := l.state(e)
	asked := time.Now()
	if id != 0 && k.outlives(prolonged, asked) {
		return id, nil
	}
	err := rpctypes.ErrLeaseNotFound
	if id != 0 {
		err = keepAlive(ctx, client, id, k.seconds())
	}
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		asked = time.Now()
		id, err = grant(ctx, client, k.seconds())
	}
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id, e.prolonged = id, asked
	return id, nil
}

func grant(ctx context.Context, client *clientv3.Client, seconds int64) (clientv3.LeaseID, error) {
	r, err := client.Grant(ctx, seconds)
	if err != nil {
		return 0, err
	}
	if r.TTL < seconds {
		return 0, fmt.Errorf("an etcd lease of %ds was granted for %ds", r.TTL, seconds)
	}
	return r.ID, nil
}

func (l *leases) state(e *lease) (clientv3.LeaseID, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.id, e.prolonged
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

// forget makes the next write get another etcd lease than id.
func (l *leases) forget(r coordination.Record, id clientv3.LeaseID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e, ok := l.mu.of[keyOf(r)]; ok && e.id == id {
		e.id = 0
	}
}

// keepAlive fails unless the etcd lease has its TTL from some moment after the call.
func keepAlive(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, seconds int64) error {
	r, err := client.KeepAliveOnce(ctx, id)
	if err != nil {
		return err
	}
	if r.TTL < seconds {
		return fmt.Errorf("%w: %ds left of %ds", rpctypes.ErrLeaseNotFound, r.TTL, seconds)
	}
	return nil
}
