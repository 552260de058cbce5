package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/record"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Swap implements leasestore.Store.
func (s *store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	k, err := s.keys(name)
	if err != nil {
		return "", err
	}
	from, ok := parse(old)
	if !ok {
		return "", leasestore.ErrConflict
	}
	value, err := record.Encode(name, next)
	if err != nil {
		return "", fmt.Errorf("%w: etcd: %w", leasestore.ErrRefused, err)
	}
	if next.Nonce != "" {
		return s.hold(ctx, k, from, next, string(value))
	}
	r, err := s.client.Txn(ctx).Then(k.blank(from.mod, next.Token, string(value))).Commit()
	if err != nil {
		return "", outcome(err)
	}
	v, err := k.blanked(r.Header.Revision, r.Responses[0].GetResponseTxn())
	return v.mark(), err
}

// Remove implements leasestore.Remover.
func (s *store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	k, err := s.keys(name)
	if err != nil {
		return err
	}
	from, ok := parse(old)
	if !ok || from.mod == 0 {
		return leasestore.ErrConflict
	}
	r, err := s.client.Txn(ctx).If(unchanged(k, from.mod)).
		Then(clientv3.OpDelete(k.record), clientv3.OpDelete(k.holder)).Commit()
	switch {
	case err != nil:
		return outcome(err)
	case !r.Succeeded:
		return leasestore.ErrConflict
	}
	return nil
}

// blank writes a blank record and deletes the holder's key, which wakes waiting locks of other
// programs. Where there is no record of a lease, the key may be that of a holder whose record was
// deleted, and who may not know it yet: then only that holder may do so, whose token is the
// revision at which its key was created.
func (k keys) blank(mod int64, token coordination.Token, value string) clientv3.Op {
	put, free := clientv3.OpPut(k.record, value), clientv3.OpDelete(k.holder)
	if mod != 0 || k.ofSession() {
		return clientv3.OpTxn([]clientv3.Cmp{unchanged(k, mod)}, []clientv3.Op{put, free}, nil)
	}
	own := clientv3.OpTxn([]clientv3.Cmp{unchanged(k, 0),
		clientv3.Compare(clientv3.CreateRevision(k.holder), "=", int64(token))},
		[]clientv3.Op{put, free}, []clientv3.Op{clientv3.OpGet(k.record, clientv3.WithKeysOnly())})
	return clientv3.OpTxn([]clientv3.Cmp{unchanged(k, 0), nothing(k.holder, k.holder+"\x00")},
		[]clientv3.Op{put}, []clientv3.Op{own})
}

// blanked returns the outcome of blank.
func (k keys) blanked(rev int64, r *etcdserverpb.TxnResponse) (version, error) {
	if !r.Succeeded && len(r.Responses) > 0 { // there was no record
		if r = r.Responses[0].GetResponseTxn(); !r.Succeeded &&
			modOf(r.Responses[0].GetResponseRange().Kvs) == 0 {
			return version{}, fmt.Errorf("%w: etcd: key %q, whose record was deleted, has not expired",
				leasestore.ErrRefused, k.holder)
		}
	}
	if !r.Succeeded {
		return version{}, leasestore.ErrConflict
	}
	return version{mod: rev}, nil
}

// hold writes the record of a holder, and its key on an etcd lease. It first keeps the etcd lease
// alive if that does not have the TTL left: if the answer to the write is lost and the record is
// found later, the holder's key must outlive the validity that the holder believes in. Doing both
// at once saves a round trip, and was wrong. So a renewal keeps it alive for the next one.
func (s *store) hold(ctx context.Context, k keys, from version, next leasestore.Record,
	value string) (_ leasestore.Version, err error) {
	w := writingOf(k, from, next, value)
	key := leaseKey{next.Nonce, next.TTL, w.tenure}
	for range 2 {
		var written version
		if w.lease, err = s.leaseFor(ctx, key, w); err == nil {
			if w.renews || w.session {
				s.leases.ahead(s.client, key)
			}
			written, err = s.put(ctx, w)
		} else if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return "", fmt.Errorf("%w: etcd: %w", leasestore.ErrRefused, err)
		}
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return written.mark(), err
		}
		s.leases.forget(key, w.lease) // certainly not written
		if w.renews {
			return "", leasestore.ErrConflict // Load shows that the holder's key is gone
		}
	}
	return "", fmt.Errorf("%w: etcd: %w", leasestore.ErrRefused, err)
}

// writing is a pending write of a holder's record.
type writing struct {
	keys
	from    version // of the record that the write replaces
	nonce   string
	token   coordination.Token
	value   string
	renews  bool               // the tenure has begun: it ends with its etcd lease
	session bool               // the record is a session's own
	tenure  coordination.Token // of the session on whose etcd lease the key is; 0: none
	forever bool
	lease   clientv3.LeaseID
}

func writingOf(k keys, from version, next leasestore.Record, value string) writing {
	w := writing{keys: k, from: from, nonce: next.Nonce, token: next.Token, value: value,
		renews: from.token != 0 && from.token == next.Token, session: k.ofSession(),
		tenure: next.Session, forever: next.Forever}
	if w.session {
		w.tenure = next.Token
	}
	return w
}

// leaseFor returns the etcd lease for the holder's key.
func (s *store) leaseFor(ctx context.Context, key leaseKey, w writing) (clientv3.LeaseID, error) {
	switch {
	case w.forever:
		return clientv3.NoLease, nil
	case w.renews:
		return s.leases.same(ctx, s.client, key)
	case w.tenure != 0 && !w.session:
		return s.leases.joined(ctx, s.client, key)
	}
	return s.leases.alive(ctx, s.client, key)
}

// write returns the puts of the record and the holder's key. The record of a session is on the etcd
// lease too, so a crashed session leaves no record behind.
func (w writing) write() []clientv3.Op {
	lease := clientv3.WithLease(w.lease)
	record := clientv3.OpPut(w.record, w.value)
	if w.session {
		record = clientv3.OpPut(w.record, w.value, lease)
	}
	return []clientv3.Op{record, clientv3.OpPut(w.holder, w.nonce, lease, clientv3.WithPrevKV())}
}

// version returns the version of what was written at a revision, from the answers to write.
func (w writing) version(rev int64, done []*etcdserverpb.ResponseOp) version {
	created := rev
	if before := done[1].GetResponsePut().PrevKv; before != nil {
		created = before.CreateRevision
	}
	return version{rev, w.given(w.token, created)}
}

// permits returns the conditions of which one must hold, the most likely first: nested transactions
// cost etcd more.
func (w writing) permits() [][]clientv3.Cmp {
	switch {
	case w.renews:
		return [][]clientv3.Cmp{append(w.mine(),
			clientv3.Compare(clientv3.LeaseValue(w.holder), "=", w.lease))}
	case w.from.token != 0:
		return [][]clientv3.Cmp{w.mine(), w.free()}
	case w.from.mod == 0:
		return [][]clientv3.Cmp{w.free(), w.mine()}
	}
	return [][]clientv3.Cmp{w.free()} // a blank record has no holder
}

// mine is the condition for a write by the holder, whatever locks wait.
func (w writing) mine() []clientv3.Cmp {
	return []clientv3.Cmp{unchanged(w.keys, w.from.mod),
		clientv3.Compare(clientv3.Value(w.holder), "=", w.nonce)}
}

// free is the condition for a write by another session: there is no lock of another program and, if
// the record is absent, no holder's key either: an absent record does not mean a free lease.
func (w writing) free() []clientv3.Cmp {
	c := []clientv3.Cmp{unchanged(w.keys, w.from.mod), nothing(w.locks, w.holder),
		nothing(w.holder+"\x00", clientv3.GetPrefixRangeEnd(w.locks))}
	if w.from.mod == 0 {
		c = append(c, nothing(w.holder, w.holder+"\x00"))
	}
	return c
}

// put writes the record and the holder's key in one transaction.
func (s *store) put(ctx context.Context, w writing) (version, error) {
	permit, otherwise := w.transaction()
	r, err := s.client.Txn(ctx).If(permit...).Then(w.write()...).Else(otherwise...).Commit()
	if err != nil {
		return version{}, outcome(err)
	}
	return w.result(r.Header.Revision, r.Succeeded, r.Responses)
}

// transaction returns the first permit, under which write is done, and what is done without it.
func (w writing) transaction() (permit []clientv3.Cmp, otherwise []clientv3.Op) {
	permits := w.permits()
	otherwise = []clientv3.Op{clientv3.OpGet(w.record, clientv3.WithKeysOnly()),
		clientv3.OpGet(w.locks, clientv3.WithFirstCreate()...)}
	for _, p := range permits[1:] {
		otherwise = []clientv3.Op{clientv3.OpTxn(p, w.write(), otherwise)}
	}
	return permits[0], otherwise
}

// result returns the outcome of the transaction from its answer.
func (w writing) result(rev int64, written bool, seen []*etcdserverpb.ResponseOp) (version, error) {
	for range w.permits()[1:] {
		if !written {
			inner := seen[0].GetResponseTxn()
			written, seen = inner.Succeeded, inner.Responses
		}
	}
	if written {
		return w.version(rev, seen), nil
	}
	return version{}, w.refused(seen)
}

// refused returns why nothing was written, from the record and the first lock that the transaction
// saw.
func (w writing) refused(seen []*etcdserverpb.ResponseOp) error {
	present, first := seen[0].GetResponseRange(), seen[1].GetResponseRange()
	if modOf(present.Kvs) == w.from.mod && len(first.Kvs) == 1 &&
		string(first.Kvs[0].Key) == w.holder {
		// Load would show the same record again, so reading does not resolve this conflict.
		return fmt.Errorf("%w: etcd: key %q has not expired, or locks of other programs wait for it",
			leasestore.ErrRefused, w.holder)
	}
	return leasestore.ErrConflict
}

func unchanged(k keys, mod int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(k.record), "=", mod)
}

// nothing is the condition that there is no key from first up to, but not including, end.
func nothing(first, end string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(first), "=", 0).WithRange(end)
}

// outcome classifies an error: ErrRefused if certainly nothing was written. ResourceExhausted is
// not such an error: near its quota, etcd executes a transaction and then answers that there is no
// space.
func outcome(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	if e, ok := errors.AsType[rpctypes.EtcdError](rpctypes.Error(err)); ok {
		switch e.Code() {
		case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument:
			return fmt.Errorf("%w: etcd: %w", leasestore.ErrRefused, err)
		}
	}
	return fmt.Errorf("etcd: %w", err)
}
