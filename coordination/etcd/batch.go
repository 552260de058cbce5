package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination/internal/record"
	"github.com/concord-go/concord/coordination/leasestore"
)

// part is one swap in the transaction of a batch.
type part struct {
	index int // in the batch
	op    clientv3.Op
	read  func(rev int64, r *etcdserverpb.TxnResponse) (version, error)
}

// SwapAll implements leasestore.Batcher. It makes the swaps in one transaction of independent inner
// ones. If etcd refuses the whole because of one of them, each swap gets a transaction of its own.
func (s *store) SwapAll(ctx context.Context, swaps []leasestore.Swap) []leasestore.Swapped {
	out := make([]leasestore.Swapped, len(swaps))
	alone := func(i int) {
		out[i].Version, out[i].Err = s.Swap(ctx, swaps[i].Name, swaps[i].Old, swaps[i].Next)
	}
	var parts []part
	var ops []clientv3.Op
	for i, w := range swaps {
		p, ok := s.part(ctx, w)
		if !ok {
			alone(i)
			continue
		}
		p.index = i
		parts, ops = append(parts, p), append(ops, p.op)
	}
	if len(parts) == 0 {
		return out
	}
	r, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		err = outcome(err)
	}
	for i, p := range parts {
		switch {
		case err == nil:
			v, err := p.read(r.Header.Revision, r.Responses[i].GetResponseTxn())
			out[p.index] = leasestore.Swapped{Version: v.mark(), Err: err}
		case errors.Is(err, leasestore.ErrRefused), errors.Is(err, rpctypes.ErrLeaseNotFound):
			alone(p.index) // certainly none was made
		default:
			out[p.index].Err = err
		}
	}
	return out
}

// part returns false for a swap that cannot be part of a transaction, or that needs other requests
// first: Swap makes it, or says why it cannot be made.
func (s *store) part(ctx context.Context, swap leasestore.Swap) (part, bool) {
	k, err := s.keys(swap.Name)
	from, known := parse(swap.Old)
	value, bad := record.Encode(swap.Name, swap.Next)
	if ctx.Err() != nil || err != nil || !known || bad != nil {
		return part{}, false
	}
	if swap.Next.Nonce == "" {
		return part{
			op:   k.blank(from.mod, swap.Next.Token, string(value)),
			read: k.blanked,
		}, true
	}
	w := writingOf(k, from, swap.Next, string(value))
	if w.lease, err = s.leaseFor(ctx, leaseKey{swap.Next.Nonce, swap.Next.TTL, w.tenure},
		w); err != nil {
		return part{}, false
	}
	permit, otherwise := w.transaction()
	return part{
		op: clientv3.OpTxn(permit, w.write(), otherwise),
		read: func(rev int64, r *etcdserverpb.TxnResponse) (version, error) {
			return w.result(rev, r.Succeeded, r.Responses)
		},
	}, true
}
