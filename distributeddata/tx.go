package distributeddata

import (
	"context"
	"fmt"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/causal"
)

// Tx is an update of several entries that is one event: every replica shows all of it or nothing, at one
// moment. It is the writer of all its changes. Open an entry with Key.In. Like a writer it must not be
// used after the function it was given to.
//
// It is atomic, not isolated from other members: updates they make at the same time merge with it, entry by
// entry, as each type says. What it reads is this member's state.
type Tx struct {
	*crdt.Writer
	txn  *core.Txn
	open []*opened // in the order they were opened
	byID map[string]*opened
}

// opened is an entry that a transaction works on.
type opened struct {
	id    string
	value any // *T
	save  func() error
}

// Atomically runs modify, once, on the replicator's goroutine; Key.Update says what it must not do. If it
// returns an error or panics, if a mutator fails, or if an entry is of another type, nothing changes.
// Otherwise all its changes are applied here at once and pushed together; the call returns when so many
// replicas have them as the level says.
//
//	err := distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
//		From.In(tx).Dec(tx.Writer, amount)
//		To.In(tx).Inc(tx.Writer, amount)
//		return nil
//	}, distributeddata.Majority)
//
// Errors: as of Key.Update.
func Atomically(ctx context.Context, r *Replicator, modify func(tx *Tx) error, opts ...Option) error {
	_, err := call[*TransactionResponse](ctx, r, struct{}{}, &Transaction{Modify: modify, At: r.options(opts).level})
	return err
}

// Transaction is Atomically for actors: see Update. It is answered with *TransactionResponse.
type Transaction struct {
	Modify  func(tx *Tx) error
	At      Consistency
	Timeout time.Duration // 0: Config.OperationTimeout
	Echo    any
	Adapt   func(*TransactionResponse) any
}

// TransactionResponse answers Transaction.
type TransactionResponse struct{ answer }

// Result is what Atomically would have returned.
func (r *TransactionResponse) Result() (struct{}, error) { return struct{}{}, r.err }

func (m *Transaction) run(a *replica, respond func(any)) {
	answer := func(_ core.Done, err error) {
		adapted(a.l.r, &TransactionResponse{answer{"", m.Echo, err}}, m.Adapt, respond)
	}
	if err := m.At.validate(); err != nil {
		answer(core.Done{}, err)
		return
	}
	a.update(m.At, m.Timeout, "", m.Adapt != nil, func(t *core.Txn) error {
		defer a.l.r.host(new("a transaction")).done()
		return transact(t, m.Modify)
	}, answer)
}

func (m *Transaction) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, &TransactionResponse{answer{"", m.Echo, err}}, m.Adapt, respond)
}

// transact runs a modify function inside the update t.
func transact(t *core.Txn, modify func(*Tx) error) error {
	w, end := crdt.Host(t.Dot(), t.Stamp())
	defer end()
	tx := &Tx{Writer: w, txn: t}
	err := guarded(func() error {
		if err := modify(tx); err != nil {
			return err
		}
		for _, o := range tx.open {
			if err := o.save(); err != nil { // runs codecs
				w.Fail(fmt.Errorf("key %q: %w", o.id, err))
			}
		}
		return w.Err()
	})
	if err != nil {
		return refused("", err)
	}
	return nil
}

// In returns the value of the entry inside a transaction, to be read and changed in place. Calling it
// again gives the same. An entry of another type, one that was deleted for good and a key that cannot be
// used refuse the whole transaction.
func (k Key[T]) In(tx *Tx) *T {
	v := k.empty
	if o := tx.byID[k.id]; o != nil {
		if v, ok := o.value.(*T); ok {
			return v
		}
		tx.Fail(fmt.Errorf("key %q: %w: opened as %T before", k.id, ErrType, o.value))
		return &v
	}
	if err := k.valid(Local); err != nil {
		tx.Fail(err)
		return &v
	}
	base := tx.txn.Get(k.id)
	v, err := k.editable(base, tx.txn.Seen())
	if err != nil {
		tx.Fail(err)
		return &v
	}
	o := &opened{k.id, &v, func() error {
		next, err := crdt.Save(tx.Writer, base, v)
		if err == nil {
			tx.txn.Put(k.id, next)
		}
		return err
	}}
	if tx.byID == nil {
		tx.byID = map[string]*opened{}
	}
	tx.open, tx.byID[k.id] = append(tx.open, o), o
	return &v
}

// DeleteIn deletes the entry inside a transaction, as Delete does. What the transaction has changed in it
// before is undone; a value that In returned before must not be used any more.
func (k Key[T]) DeleteIn(tx *Tx) {
	if err := k.valid(Local); err != nil {
		tx.Fail(err)
		return
	}
	if o := tx.byID[k.id]; o != nil {
		o.save = func() error { return nil }
		delete(tx.byID, k.id)
	}
	clearEntry(tx.txn, k.id, false)
}

// Snapshot is what this member's replica held at one instant. It is immutable, and may be kept; it costs
// memory only for what has changed since.
type Snapshot struct{ p *published }

// Snapshot returns the present state: reads of several entries from it belong together, so what an
// atomic update did is in all of them or in none.
func (r *Replicator) Snapshot() Snapshot { return Snapshot{r.readable()} }

// Of reads the entry in a snapshot. The errors are those of Get at Local.
func (k Key[T]) Of(s Snapshot) (T, error) {
	if s.p == nil {
		return k.empty, ErrClosed
	}
	return k.read(s.p)
}

// editable returns the value of a store for an update.
func (k Key[T]) editable(s causal.Store, seen causal.Vector) (T, error) {
	if buried(s) {
		return k.empty, fmt.Errorf("key %q: %w", k.id, ErrDeleted)
	}
	v := k.empty
	err := guarded(func() (err error) {
		v, err = crdt.Load(k.empty, s, seen) // runs codecs
		return err
	})
	if err != nil {
		return k.empty, fmt.Errorf("key %q: %w", k.id, err)
	}
	return v, nil
}
