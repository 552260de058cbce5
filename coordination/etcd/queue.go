package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
)

// atOnce bounds the operations of one transaction: etcd allows 128, including nested ones.
const atOnce = 64

// queueOf returns the prefix of the places in the queue of a name. Commas are escaped in names, so
// none of these keys is that of a lease, or below one.
func (s *Store) queueOf(name string) string {
	return s.prefix + ",queue/" + url.PathEscape(name) + "/"
}

func placeKey(at, nonce string) string { return at + url.PathEscape(nonce) }

// Enqueue implements leasestore.Queuer. The place is a key on an etcd lease of the waiting
// session.
func (s *Store) Enqueue(ctx context.Context, name string,
	p leasestore.Waiter) ([]leasestore.Waiter, error) {
	if len(name) > maxName {
		return nil, fmt.Errorf("etcd: name of %d bytes, at most %d", len(name), maxName)
	}
	at, owner := s.queueOf(name), leaseKey{nonce: p.Nonce, ttl: p.TTL}
	var places []*mvccpb.KeyValue
	for range 2 {
		id, err := s.leases.alive(ctx, s.client, owner)
		if err == nil {
			places, err = s.takePlace(ctx, at, p, id)
		}
		switch {
		case err == nil:
			return s.ahead(ctx, at, p, places)
		case !errors.Is(err, rpctypes.ErrLeaseNotFound):
			return nil, fmt.Errorf("etcd: queue of %.80q: %w", name, err)
		}
		s.leases.forget(owner, id)
	}
	return nil, fmt.Errorf("etcd: queue of %.80q: %w", name, rpctypes.ErrLeaseNotFound)
}

// takePlace puts a place, unless the stored place has a larger beat, and returns all places in
// order of arrival. A key that is written again keeps its creation revision.
func (s *Store) takePlace(ctx context.Context, at string, p leasestore.Waiter,
	id clientv3.LeaseID) ([]*mvccpb.KeyValue, error) {
	key, value := placeKey(at, p.Nonce), placeText(p)
	put := clientv3.OpPut(key, value, clientv3.WithLease(id))
	all := clientv3.OpGet(at, clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	r, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(key), "<", value)).
		Then(put, all).
		Else(clientv3.OpTxn([]clientv3.Cmp{nothing(key, key+"\x00")}, []clientv3.Op{put}, nil),
			all).
		Commit()
	if err != nil {
		return nil, err
	}
	return r.Responses[1].GetResponseRange().Kvs, nil
}

// ahead returns the places ahead of p, after it has enforced the bound.
func (s *Store) ahead(ctx context.Context, at string, p leasestore.Waiter,
	places []*mvccpb.KeyValue) ([]leasestore.Waiter, error) {
	places, err := s.shorten(ctx, places)
	if err != nil {
		return nil, fmt.Errorf("etcd: a queue of more than %d places: %w", queue.Most, err)
	}
	var before []leasestore.Waiter
	for _, kv := range places {
		if string(kv.Key) == placeKey(at, p.Nonce) {
			break
		}
		if o, ok := placeOf(at, kv); ok {
			before = append(before, o)
		}
	}
	return before, nil
}

// shorten removes the places beyond the bound.
func (s *Store) shorten(ctx context.Context,
	places []*mvccpb.KeyValue) ([]*mvccpb.KeyValue, error) {
	if len(places) <= queue.Most {
		return places, nil
	}
	oldest := slices.SortedFunc(slices.Values(places), func(a, b *mvccpb.KeyValue) int {
		return cmp.Compare(a.ModRevision, b.ModRevision)
	})
	oldest = oldest[:min(len(places)-queue.Most, atOnce)]
	var drop []clientv3.Op
	for _, kv := range oldest {
		key := string(kv.Key)
		drop = append(drop, clientv3.OpTxn(
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision)},
			[]clientv3.Op{clientv3.OpDelete(key)}, nil))
	}
	if _, err := s.client.Txn(ctx).Then(drop...).Commit(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(places, func(kv *mvccpb.KeyValue) bool {
		return slices.Contains(oldest, kv)
	}), nil
}

// Leave implements leasestore.Queuer.
func (s *Store) Leave(ctx context.Context, name string, gone []leasestore.Waiter) error {
	at := s.queueOf(name)
	for some := range slices.Chunk(gone, atOnce) {
		var leave []clientv3.Op
		for _, p := range some {
			key := placeKey(at, p.Nonce)
			leave = append(leave,
				clientv3.OpTxn(
					[]clientv3.Cmp{clientv3.Compare(clientv3.Value(key), "<", written(p))},
					[]clientv3.Op{clientv3.OpDelete(key)}, nil))
		}
		if _, err := s.client.Txn(ctx).Then(leave...).Commit(); err != nil {
			return fmt.Errorf("etcd: queue of %.80q: %w", name, err)
		}
	}
	return nil
}

// placeText begins with the beat at full width, because etcd compares values as text.
func placeText(p leasestore.Waiter) string { return fmt.Sprintf("%020d %d", p.Beat, p.TTL) }

// written returns a text above all texts with the beat of p, and below all with a larger beat.
func written(p leasestore.Waiter) string { return fmt.Sprintf("%020d!", p.Beat) }

// placeOf returns false for a key or value that it cannot decode.
func placeOf(at string, kv *mvccpb.KeyValue) (p leasestore.Waiter, ok bool) {
	beat, ttl, _ := strings.Cut(string(kv.Value), " ")
	nonce, err := url.PathUnescape(strings.TrimPrefix(string(kv.Key), at))
	if err != nil {
		return p, false
	}
	n, err := strconv.ParseUint(beat, 10, 64)
	if err != nil {
		return p, false
	}
	d, err := strconv.ParseInt(ttl, 10, 64)
	return leasestore.Waiter{Nonce: nonce, Beat: n, TTL: time.Duration(d)}, err == nil
}
