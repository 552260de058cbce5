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

// leaseKey makes sessions independent of each other. TTLs are whole seconds in etcd, rounded up.
type leaseKey struct {
	nonce   string
	seconds int64
}

func keyOf(r coordination.Record) leaseKey {
	return leaseKey{r.Nonce, int64((r.TTL + time.Second - 1) / time.Second)}
}

type lease struct {
	making chan struct{} // held by who makes it
	id     clientv3.LeaseID
	used   time.Time // id and used are guarded by leases.mu
}

// alive returns the etcd lease for a holder's record, which lives for the record's TTL from some moment
// after the call.
func (l *leases) alive(ctx context.Context, client *clientv3.Client, r coordination.Record) (clientv3.LeaseID, error) {
	id, fresh, err := l.get(ctx, client, r)
	if err != nil || fresh {
		return id, err
	}
	err = keepAlive(ctx, client, id, r.TTL)
	if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return id, err
	}
	l.forget(r, id)
	id, _, err = l.get(ctx, client, r)
	return id, err
}

// get returns the etcd lease for a holder's record, and whether it was made by this call.
func (l *leases) get(ctx context.Context, client *clientv3.Client, r coordination.Record) (clientv3.LeaseID, bool, error) {
	k := keyOf(r)
	e := l.entry(k)
	select {
	case e.making <- struct{}{}:
	case <-ctx.Done():
		return 0, false, ctx.Err()
	}
	defer func() { <-e.making }()
	if id := l.idOf(e); id != 0 {
		return id, false, nil
	}
	granted, err := client.Grant(ctx, max(k.seconds, 1))
	if err != nil {
		return 0, false, err
	}
	if granted.TTL < k.seconds {
		return 0, false, fmt.Errorf("an etcd lease of %ds was granted for %ds", granted.TTL, k.seconds)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = granted.ID
	return e.id, true, nil
}

func (l *leases) idOf(e *lease) clientv3.LeaseID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return e.id
}

// entry returns that of k, and forgets those that have certainly expired.
func (l *leases) entry(k leaseKey) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	e, ok := l.mu.of[k]
	if !ok {
		for old, e := range l.mu.of {
			if now.Sub(e.used) > 2*time.Duration(old.seconds)*time.Second+time.Minute {
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
		delete(l.mu.of, keyOf(r))
	}
}

// keepAlive fails unless the etcd lease lives for ttl from some moment after the call.
func keepAlive(ctx context.Context, client *clientv3.Client, id clientv3.LeaseID, ttl time.Duration) error {
	r, err := client.KeepAliveOnce(ctx, id)
	if err != nil {
		return err
	}
	if time.Duration(r.TTL)*time.Second < ttl {
		return fmt.Errorf("%w: %ds left for %v", rpctypes.ErrLeaseNotFound, r.TTL, ttl)
	}
	return nil
}
