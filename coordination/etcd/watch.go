package etcd

import (
	"context"
	"fmt"
	"iter"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/record"
)

// Watch implements coordination.Watcher. A release comes with its event; after any other change the lease is read.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[coordination.Record, error] {
	return func(yield func(coordination.Record, error) bool) {
		k, err := s.keys(name)
		if err != nil {
			yield(coordination.Record{}, err)
			return
		}
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		defer cancel()
		records := s.client.Watch(ctx, k.record, clientv3.WithCreatedNotify())
		locks := s.client.Watch(ctx, k.locks, clientv3.WithPrefix(), clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
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
				yield(coordination.Record{}, err)
				return
			}
			if r.Created {
				begun++
			}
			if begun < 2 {
				continue // the first look comes after both have begun, so that nothing falls between
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

// after is the lease after the last of some events: what a release wrote; else it is read, since a holder's token is told
// by another key.
func (s *Store) after(ctx context.Context, k keys, r clientv3.WatchResponse) (coordination.Record, error) {
	if n := len(r.Events); n > 0 {
		if last := r.Events[n-1]; string(last.Kv.Key) == k.record && last.Type == clientv3.EventTypePut {
			if rec, err := record.Decode(k.name, last.Kv.Value); err != nil || rec.Nonce == "" {
				return rec, err
			}
		}
	}
	rec, _, err := s.Load(ctx, k.name)
	return rec, err
}
