package etcd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/record"
	"github.com/concord-go/concord/coordination/leasestore"
)

// lockTTL is the TTL shown for a lock of another program: etcd's default for sessions.
const lockTTL = 60 * time.Second

// view is the result of one linearizable read of a lease.
type view struct {
	keys
	record leasestore.Record
	mod    int64            // revision of the record's last change, 0 without one
	first  *mvccpb.KeyValue // the oldest key among the locks and the holder's key
	now    int64            // etcd's revision
}

func (v view) held() bool { return v.first != nil && string(v.first.Key) == v.holder }

// foreign reports whether a lock of another program is held.
func (v view) foreign() bool { return v.first != nil && !v.held() }

// Load implements leasestore.Store. It first corrects an outdated record, so that a version shown
// while the lease was free or held does not come back after a lock of another program was held, or
// after the holder's key has expired.
func (s *store) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	k, err := s.keys(name)
	if err != nil {
		return leasestore.Record{}, "", err
	}
	for range 8 {
		v, err := s.look(ctx, k)
		if err != nil {
			return leasestore.Record{}, "", err
		}
		if !v.outdated() {
			rec, ver := v.show()
			return rec, ver, nil
		}
		if err := s.update(ctx, v); errors.Is(err, rpctypes.ErrPermissionDenied) {
			rec, ver := v.show() // this client cannot acquire anyway
			return rec, ver, nil
		} else if err != nil {
			return leasestore.Record{}, "", fmt.Errorf("etcd: lease %.80q: %w", name, err)
		}
	}
	return leasestore.Record{}, "", fmt.Errorf("etcd: lease %.80q changes too fast to be read",
		name)
}

func (s *store) look(ctx context.Context, k keys) (view, error) {
	r, err := s.client.Txn(ctx).Then(clientv3.OpGet(k.record),
		clientv3.OpGet(k.locks, clientv3.WithFirstCreate()...)).Commit()
	if err != nil {
		return view{}, fmt.Errorf("etcd: lease %.80q: %w", k.name, err)
	}
	records, locks := r.Responses[0].GetResponseRange().Kvs, r.Responses[1].GetResponseRange().Kvs
	v := view{keys: k, mod: modOf(records), now: r.Header.Revision}
	if len(locks) > 0 {
		v.first = locks[0]
	}
	if len(records) > 0 {
		if v.record, err = record.Decode(k.name, records[0].Value); err != nil {
			return view{}, fmt.Errorf("etcd: key %.200q: %w", k.keyOfRecord(), err)
		}
	}
	if v.held() && v.record.Nonce != "" {
		v.record.Token = k.given(v.record.Token, v.first.CreateRevision)
	}
	return v, nil
}

func (k keys) keyOfRecord() string { return k.record }

// outdated reports whether the record does not reflect a lock that came after it, or the end of its
// holder's key.
func (v view) outdated() bool {
	if v.foreign() {
		return v.mod < v.first.CreateRevision
	}
	return v.first == nil && v.record.Nonce != ""
}

// update blanks an outdated record, unless it has changed meanwhile.
func (s *store) update(ctx context.Context, v view) error {
	value, err := record.Encode(v.name, leasestore.Record{Token: v.token()})
	if err != nil {
		return err
	}
	_, err = s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(v.keys.record), "=", v.mod), v.sameFirst()).
		Then(clientv3.OpPut(v.keys.record, string(value))).
		Commit()
	return err
}

// sameFirst is the condition that the view is still current: the foreign lock is still there, or
// there is still no lock.
func (v view) sameFirst() clientv3.Cmp {
	if v.foreign() {
		return clientv3.Compare(clientv3.CreateRevision(string(v.first.Key)), "=",
			v.first.CreateRevision)
	}
	return nothing(v.locks, clientv3.GetPrefixRangeEnd(v.locks))
}

// token returns a token that is not below any that this lease or a lock of another program has had.
// Each tenure or lock came with a change in etcd, so while nobody holds the lease, the revision of
// etcd is such a number.
func (v view) token() coordination.Token {
	if v.foreign() {
		return max(v.record.Token, coordination.Token(v.first.CreateRevision))
	}
	return max(v.record.Token, coordination.Token(v.now))
}

func (v view) show() (leasestore.Record, leasestore.Version) {
	switch {
	case v.foreign():
		key := string(v.first.Key)
		return leasestore.Record{Owner: "etcd lock " + key,
				Nonce: fmt.Sprintf("%s@%d", key, v.first.CreateRevision),
				Token: coordination.Token(v.first.CreateRevision), TTL: lockTTL},
			version{mod: v.mod}.mark() + locked + leasestore.Version(rand.Text())
	case v.record.Nonce == "":
		return leasestore.Record{Token: v.token()}, version{mod: v.mod}.mark()
	}
	return v.record, versionOf(v.mod, v.record).mark()
}

func modOf(kvs []*mvccpb.KeyValue) int64 {
	if len(kvs) == 0 {
		return 0
	}
	return kvs[0].ModRevision
}
