package distributeddata

import (
	"cmp"
	"context"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// Delete removes everything that this replica has seen of the entry. Updates that it has not seen
// survive on their own and do not bring deleted data back. The entry can be used again at once.
// Deleting a missing entry succeeds. After a Delete with Permanently the entry cannot be used
// again.
//
// Errors: ErrQuorum, ErrUnknown, node.ErrRejoining, ErrClosed, ErrInvalid.
func (k Key[T]) Delete(ctx context.Context, r *Replicator, at Consistency,
	opts ...Option) error {
	o := r.options(opts)
	if o.ttl != 0 {
		return errNotUpdate
	}
	_, err := call[*DeleteResponse[T]](ctx, r, k.empty(), &Delete[T]{Key: k, At: at,
		Permanently: o.permanently})
	return err
}

// Permanently is an option of Delete. It makes every Get and Update of the entry return ErrDeleted
// forever, at every member that has heard of the deletion. An update that a member makes before it
// has heard is lost. A permanent deletion costs some 50 bytes of memory per entry at each replica,
// forever; an ordinary deletion costs nothing.
const Permanently deletion = 1

type deletion int

func (deletion) apply(o *options) { o.permanently = true }

func (m *Delete[T]) run(a *replica, respond func(any)) {
	end := a.traced(m.Span, m)
	answer := func(_ core.Done, err error) {
		end(err)
		adapted(a.l.r, m.response(err), m.Adapt, respond)
	}
	if err := cmp.Or(m.Key.valid(m.At), a.admit(m.At, m.Key.id)); err != nil {
		answer(core.Done{}, err)
		return
	}
	a.expect(m.operation())
	a.update(a.of(m.Key.id), m.At, m.Timeout, m.Key.id, m.Adapt != nil, func(t *history.Txn) error {
		clearEntry(t, m.Key.id, m.Permanently)
		return nil
	}, answer)
}

func (m *Delete[T]) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, m.response(err), m.Adapt, respond)
}

// clearEntry removes everything under a key, unless the key was permanently deleted. A permanent
// deletion adds a separate atom, the tombstone, which no update can observe and remove.
func clearEntry(t *history.Txn, id string, permanently bool) {
	s := t.Get(id)
	if permanentlyDeleted(s) {
		return
	}
	t.Clear(id)
	if permanently {
		t.Put(id, t.Get(id).Put(tombstone, causal.Leaf{Dot: t.Dot()}))
	}
}

// permanentlyDeleted reports whether the entry was permanently deleted.
func permanentlyDeleted(s causal.Store) bool {
	_, ok := s.Get(tombstone)
	return ok
}

// tombstone is the path of the atom that a permanent deletion adds.
var tombstone = string([]byte{byte(causal.MakeTag(causal.Tombstone, causal.Custom))})

// DeleteResponse answers Delete.
type DeleteResponse[T crdt.Value[T]] struct {
	answer
	Key Key[T]
}

func (m *Delete[T]) response(err error) *DeleteResponse[T] {
	return &DeleteResponse[T]{answer{m.Key.id, m.Echo, err}, m.Key}
}

// Result returns the empty value and the error that Key.Delete would have returned.
func (r *DeleteResponse[T]) Result() (T, error) { return r.Key.empty(), r.err }
