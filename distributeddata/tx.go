package distributeddata

import (
	"cmp"
	"context"
	"errors"
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
//
// Its entries are all durable, or none is: see Config.Durable.
type Tx struct {
	*crdt.Writer
	volatile *core.Txn
	durable  *core.Txn // nil without Config.Durable
	choice   *choice
	stamper  stamper
	now      *published // when it began
	txn      *core.Txn  // the one of these that the entries opened so far are of
	first    string     // the first of them; empty: there is none
	open     []*opened  // in the order they were opened
	byID     map[string]*opened
}

// opened is an entry that a transaction works on.
type opened struct {
	id    string
	base  causal.Store
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
// Errors: as of Key.Update. ErrModify, which is ErrInvalid too, if some of the entries are durable and some are not.
func Atomically(ctx context.Context, r *Replicator, modify func(tx *Tx) error, opts ...Option) error {
	o := r.options(opts)
	if o.ttl != 0 {
		return errNotUpdate
	}
	_, err := call[*TransactionResponse](ctx, r, struct{}{}, &Transaction{Modify: modify, At: o.level})
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
	if err := cmp.Or(m.At.validate(), a.admit(m.At, "")); err != nil {
		answer(core.Done{}, err)
		return
	}
	a.expect(m.operation())
	a.updateEither(m.At, m.Timeout, m.Adapt != nil, func(t *Tx) error {
		defer a.l.r.host(new("a transaction")).done()
		if err := t.run(m.Modify); err != nil {
			return err
		}
		return t.fits(a)
	}, answer)
}

func (m *Transaction) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, &TransactionResponse{answer{"", m.Echo, err}}, m.Adapt, respond)
}

// run runs a modify function.
func (tx *Tx) run(modify func(*Tx) error) error {
	w, end := crdt.Host(tx.txn.Dot(), tx.txn.Stamp())
	defer end()
	tx.Writer = w
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

// fits checks what the transaction has made of its entries.
func (tx *Tx) fits(a *replica) error {
	added := 0
	for _, o := range tx.open {
		if err := a.fits(o.id, o.base, tx.txn.Get(o.id), &added); err != nil {
			return err
		}
	}
	return nil
}

// of returns the working copy that an entry is in; nil, with the transaction refused, if that is not the one of the entries
// before it.
func (tx *Tx) of(id string) *core.Txn {
	txn := tx.volatile
	if tx.choice.durable(id) {
		txn = tx.durable
	}
	switch {
	case txn == nil:
		tx.Fail(fmt.Errorf("key %q: %w", id, ErrLoading))
		return nil
	case txn == tx.txn:
	case tx.first == "" && tx.Err() == nil:
		w, _ := crdt.Host(txn.Dot(), txn.Stamp()) // the writer ends with the one that it replaces
		tx.txn, *tx.Writer = txn, *w
	default:
		of := [...]string{"volatile", "durable"}
		if txn == tx.durable {
			of = [...]string{"durable", "volatile"}
		}
		tx.Fail(fmt.Errorf("%w: key %q is %s and key %q is %s: see Config.Durable", ErrInvalid, id, of[0], tx.first, of[1]))
		return nil
	}
	tx.first = cmp.Or(tx.first, id)
	return txn
}

// errElsewhere refuses an update in the domain that a transaction is not of; it is no one's error.
var errElsewhere = errors.New("distributeddata: the transaction is of the other domain")

// elsewhere reports whether an error is that. It asks err nothing, which may be the application's.
func elsewhere(err error) bool { return err == errElsewhere } //nolint:errorlint // never wrapped

// updateEither begins an update of volatile keys or of durable ones: which they are shows when modify has run. It runs
// once, inside a step of both domains, one of which is then refused.
func (a *replica) updateEither(at Consistency, timeout time.Duration, adapted bool, modify func(*Tx) error, done func(core.Done, error)) {
	if a.durable == nil || a.durable.loading() {
		a.update(a.volatile, at, timeout, "", adapted, func(t *core.Txn) error {
			return modify(&Tx{volatile: t, txn: t, choice: a.l.r.choice, stamper: a.l.ttls.stamper(0), now: a.l.published.Load()})
		}, done)
		return
	}
	answer := func(d core.Done, err error) {
		if !elsewhere(err) {
			done(d, err)
		}
	}
	a.update(a.volatile, at, timeout, "", adapted, func(volatile *core.Txn) error {
		a.expect(operation{"atomically", at}, "")
		theirs := errElsewhere // unless the other step is refused for being the wrong one
		a.update(a.durable, at, timeout, "", adapted, func(durable *core.Txn) error {
			tx := &Tx{volatile: volatile, durable: durable, txn: volatile, choice: a.l.r.choice, stamper: a.l.ttls.stamper(0), now: a.l.published.Load()}
			if err := modify(tx); err != nil || tx.txn == durable {
				return err
			}
			theirs = nil
			return errElsewhere
		}, answer)
		return theirs
	}, answer)
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
	txn := tx.of(k.id)
	if txn == nil {
		return &v
	}
	if err := k.of.check(tx.now); err != nil {
		tx.Fail(err)
		return &v
	}
	was := txn.Get(k.id)
	base := content(was)
	v, err := k.editable(base, txn.Seen())
	if err != nil {
		tx.Fail(err)
		return &v
	}
	o := &opened{k.id, base, &v, func() error {
		next, err := crdt.Save(tx.Writer, base, &v)
		if err == nil {
			txn.Put(k.id, tx.stamper.stamped(txn, k.id, was, base, next))
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
	if txn := tx.of(k.id); txn != nil {
		clearEntry(txn, k.id, false)
	}
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
	if s.p.of(k.id).loading() {
		return k.empty, fmt.Errorf("key %q: %w", k.id, ErrLoading)
	}
	v, _, err := k.read(s.p)
	return v, err
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
