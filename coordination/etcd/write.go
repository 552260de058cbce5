package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/record"
)

// Swap implements coordination.Store.
func (s *Store) Swap(ctx context.Context, name string, old coordination.Version, next coordination.Record) (coordination.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	k, err := s.keys(name)
	if err != nil {
		return "", err
	}
	from, ok := parse(old)
	if !ok {
		return "", coordination.ErrConflict
	}
	value, err := record.Encode(name, next)
	if err != nil {
		return "", fmt.Errorf("%w: etcd: %w", coordination.ErrRefused, err)
	}
	var rev int64
	if next.Nonce == "" {
		rev, err = s.blank(ctx, k, from.mod, string(value))
	} else {
		rev, err = s.hold(ctx, k, from, next, string(value))
	}
	if err != nil {
		return "", err
	}
	return versionOf(rev, next).mark(), nil
}

// blank frees the lease: the holder's key goes in the same step, which wakes locks of others.
func (s *Store) blank(ctx context.Context, k keys, mod int64, value string) (rev int64, err error) {
	return s.replace(ctx, k, mod, clientv3.OpPut(k.record, value))
}

// Remove implements coordination.Remover.
func (s *Store) Remove(ctx context.Context, name string, old coordination.Version) error {
	k, err := s.keys(name)
	if err != nil {
		return err
	}
	from, ok := parse(old)
	if !ok || from.mod == 0 {
		return coordination.ErrConflict
	}
	_, err = s.replace(ctx, k, from.mod, clientv3.OpDelete(k.record))
	return err
}

// replace deletes the holder's key and does what else is asked for, if the record has not changed.
func (s *Store) replace(ctx context.Context, k keys, mod int64, do clientv3.Op) (rev int64, err error) {
	r, err := s.client.Txn(ctx).If(unchanged(k, mod)).Then(do, clientv3.OpDelete(k.holder)).Commit()
	switch {
	case err != nil:
		return 0, outcome(err)
	case !r.Succeeded:
		return 0, coordination.ErrConflict
	}
	return r.Header.Revision, nil
}

// hold writes the record of a holder, and its key on an etcd lease. That is prolonged first, if it has not the TTL
// left: a record that is found later, although the answer to its write was lost, must be one whose holder's key
// outlives what the holder believes. Doing both at once is faster by a round trip and was wrong.
func (s *Store) hold(ctx context.Context, k keys, from version, next coordination.Record, value string) (rev int64, err error) {
	w := writing{keys: k, from: from, nonce: next.Nonce, value: value, tie: tieOf(k.name, from, next)}
	key := leaseKey{next.Nonce, next.TTL, w.tie.tenure}
	for range 2 {
		if w.lease, err = s.leaseFor(ctx, key, w.tie); err == nil {
			rev, err = s.put(ctx, w)
		} else if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return 0, fmt.Errorf("%w: etcd: %w", coordination.ErrRefused, err)
		}
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return rev, err
		}
		s.leases.forget(key, w.lease) // certainly not written
		if w.tie.renews {
			return 0, coordination.ErrConflict // Load shows that it has ended
		}
	}
	return 0, fmt.Errorf("%w: etcd: %w", coordination.ErrRefused, err)
}

// tie is what a holder's key has to do with others of its session.
type tie struct {
	tenure  coordination.Token // of the session, in whose etcd lease it shares; 0: none
	session bool               // it is that of the session record
	renews  bool               // and of a tenure that has begun: without its etcd lease it has ended
	forever bool
}

func tieOf(name string, from version, next coordination.Record) tie {
	if strings.HasPrefix(name, coordination.SessionRecords) {
		return tie{tenure: next.Token, session: true, renews: from.mod != 0 && from.token == next.Token}
	}
	return tie{tenure: next.Session, forever: next.Forever}
}

func (s *Store) leaseFor(ctx context.Context, key leaseKey, t tie) (clientv3.LeaseID, error) {
	switch {
	case t.forever:
		return clientv3.NoLease, nil
	case t.renews:
		return s.leases.same(ctx, s.client, key)
	case t.tenure != 0 && !t.session:
		return s.leases.joined(ctx, s.client, key)
	}
	return s.leases.alive(ctx, s.client, key)
}

// writing is the record of a holder on its way.
type writing struct {
	keys
	from  version // of the record that it replaces
	nonce string
	value string
	lease clientv3.LeaseID
	tie   tie
}

// write puts the holder's key, and the record. That of a session is on the etcd lease too: whose session has
// crashed leaves none.
func (w writing) write() []clientv3.Op {
	lease := clientv3.WithLease(w.lease)
	if w.tie.session {
		return []clientv3.Op{clientv3.OpPut(w.record, w.value, lease), clientv3.OpPut(w.holder, w.nonce, lease)}
	}
	return []clientv3.Op{clientv3.OpPut(w.record, w.value), clientv3.OpPut(w.holder, w.nonce, lease)}
}

// mine is the condition for a holder to write, whoever waits: its key is there, and that of a session that is being
// renewed is on the etcd lease that all its keys are on.
func (w writing) mine() []clientv3.Cmp {
	c := []clientv3.Cmp{unchanged(w.keys, w.from.mod), clientv3.Compare(clientv3.Value(w.holder), "=", w.nonce)}
	if w.tie.renews {
		c = append(c, clientv3.Compare(clientv3.LeaseValue(w.holder), "=", w.lease))
	}
	return c
}

// free is the condition for others to write: no lock of others is there, and beside an absent record no holder's
// key is there either: absence of a record is not freedom.
func (w writing) free() []clientv3.Cmp {
	c := []clientv3.Cmp{unchanged(w.keys, w.from.mod), nothing(w.locks, w.holder), nothing(w.holder+"\x00", clientv3.GetPrefixRangeEnd(w.locks))}
	if w.from.mod == 0 {
		c = append(c, nothing(w.holder, w.holder+"\x00"))
	}
	return c
}

// permits are the conditions of which one has to hold, the likeliest first: what is nested costs etcd more.
func (w writing) permits() [][]clientv3.Cmp {
	switch {
	case w.tie.renews:
		return [][]clientv3.Cmp{w.mine()}
	case w.from.token != 0:
		return [][]clientv3.Cmp{w.mine(), w.free()}
	case w.from.mod == 0:
		return [][]clientv3.Cmp{w.free(), w.mine()}
	}
	return [][]clientv3.Cmp{w.free()} // of a blank record nobody is the holder
}

// put writes record and holder's key in one step.
func (s *Store) put(ctx context.Context, w writing) (rev int64, err error) {
	permits := w.permits()
	otherwise := []clientv3.Op{clientv3.OpGet(w.record, clientv3.WithKeysOnly()), clientv3.OpGet(w.locks, clientv3.WithFirstCreate()...)}
	for _, p := range permits[1:] {
		otherwise = []clientv3.Op{clientv3.OpTxn(p, w.write(), otherwise)}
	}
	r, err := s.client.Txn(ctx).If(permits[0]...).Then(w.write()...).Else(otherwise...).Commit()
	if err != nil {
		return 0, outcome(err)
	}
	written, seen := r.Succeeded, r.Responses
	for range permits[1:] {
		if !written {
			inner := seen[0].GetResponseTxn()
			written, seen = inner.Succeeded, inner.Responses
		}
	}
	if written {
		return r.Header.Revision, nil
	}
	return 0, w.refused(seen)
}

// refused tells why nothing was written, from what was seen of the record and the first lock.
func (w writing) refused(seen []*etcdserverpb.ResponseOp) error {
	present, first := seen[0].GetResponseRange(), seen[1].GetResponseRange()
	if modOf(present.Kvs) == w.from.mod && len(first.Kvs) == 1 && string(first.Kvs[0].Key) == w.holder {
		// Load shows the same record again, so this is no conflict to be solved by looking.
		return fmt.Errorf("%w: etcd: %q waits for the holder's key to expire, or others do", coordination.ErrRefused, w.holder)
	}
	return coordination.ErrConflict
}

func unchanged(k keys, mod int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(k.record), "=", mod)
}

// nothing is true if there is no key from first up to end.
func nothing(first, end string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(first), "=", 0).WithRange(end)
}

// outcome tells errors that say that nothing was written from those that do not.
func outcome(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	if e, ok := errors.AsType[rpctypes.EtcdError](rpctypes.Error(err)); ok {
		switch e.Code() {
		case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.ResourceExhausted:
			return fmt.Errorf("%w: etcd: %w", coordination.ErrRefused, err)
		}
	}
	return fmt.Errorf("etcd: %w", err)
}
