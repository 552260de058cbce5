package etcd

import (
	"context"
	"fmt"
	"iter"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination/internal/record"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Watch implements leasestore.Watcher. The event of a release contains the record; after any
// other change Watch reads the lease.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		k, err := s.keys(name)
		if err != nil {
			yield(leasestore.Record{}, err)
			return
		}
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		defer cancel()
		records := s.client.Watch(ctx, k.record, clientv3.WithCreatedNotify())
		locks := s.client.Watch(ctx, k.locks, clientv3.WithPrefix(), clientv3.WithFilterPut(),
			clientv3.WithCreatedNotify())
		for begun := 0; ; {
			var r clientv3.WatchResponse
			select {
			case r = <-records:
			case r = <-locks:
			}
			if ctx.Err() != nil {
				return
			}
			if err := problem(r); err != nil {
				yield(leasestore.Record{}, err)
				return
			}
			if r.Created {
				begun++
			}
			if begun < 2 {
				continue // read only after both watches have begun, so that no change is missed
			}
			rec, err := s.after(ctx, k, r)
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

func problem(r clientv3.WatchResponse) error {
	switch {
	case r.Err() != nil:
		return fmt.Errorf("etcd: watch: %w", r.Err())
	case r.Canceled || !r.Created && len(r.Events) == 0 && !r.IsProgressNotify():
		return fmt.Errorf("etcd: watch ended")
	}
	return nil
}

// after returns the lease after the last of some events: the record that a release wrote. Otherwise
// it reads the lease, because the holder's token depends on another key.
func (s *store) after(ctx context.Context, k keys,
	r clientv3.WatchResponse) (leasestore.Record, error) {
	if n := len(r.Events); n > 0 {
		if last := r.Events[n-1]; string(last.Kv.Key) == k.record &&
			last.Type == clientv3.EventTypePut {
			if rec, err := record.Decode(k.name, last.Kv.Value); err != nil || rec.Nonce == "" {
				return rec, err
			}
		}
	}
	rec, _, err := s.Load(ctx, k.name)
	return rec, err
}
