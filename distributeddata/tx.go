package distributeddata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// Tx is an update of several entries that forms one event: every replica shows all of it or none,
// at one moment. A Tx is also the writer for all its changes. Open an entry with Key.In. Like a
// writer, a Tx must not be used after its function has returned.
//
// A Tx is atomic but not isolated from other members: updates that they make at the same time merge
// with it, entry by entry, as each type defines. It reads this member's state.
//
// Its entries must be all durable or all volatile; see Config.Durable.
type Tx struct {
	*crdt.Writer
	volatile    *history.Txn
	durable     *history.Txn // nil without Config.Durable
	durableKeys *durableKeys
	stamper     stamper
	now         *replicatorView // the state when the transaction began
	txn         *history.Txn    // volatile or durable: the one that holds the opened entries
	first       string          // the first opened entry; empty: none is open
	keys        int             // opened or deleted so far
	open        []*opened       // in the order in which they were opened
	byID        map[string]*opened
}

// opened is an entry that a transaction has opened.
type opened struct {
	id    string
	base  causal.Store
	value any // *T
	save  func() error
}

// Atomically runs modify once, on the replicator's goroutine; Key.Update lists what modify must not
// do. If modify returns an error or panics, if a mutator fails, or if an entry is of another type,
// nothing changes. Otherwise all changes are applied here at once and pushed together. Atomically
// returns when as many replicas have them as the level requires.
//
//	err := distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
//		From.In(tx).Add(tx.Writer, -amount)
//		To.In(tx).Add(tx.Writer, amount)
//		return nil
//	}, distributeddata.Majority)
//
// Errors: those of Key.Update. If some of the entries are durable and some are not, the error
// matches both ErrModify and ErrInvalid. With more than 100,000 entries, during which nothing else
// could be done here for a second, it matches ErrModify and crdt.ErrTooLarge.
func Atomically(ctx context.Context, r *Replicator, modify func(tx *Tx) error,
	at Consistency) error {
	_, err := call[*TransactionResponse](ctx, r, struct{}{},
		&Transaction{Modify: modify, At: at})
	return err
}

// Transaction is the message form of Atomically; see Update. It is answered with
// *TransactionResponse.
type Transaction struct {
	Modify  func(tx *Tx) error
	At      Consistency   // must be stated
	Timeout time.Duration // 0: Config.OperationTimeout
	Echo    any
	Adapt   func(*TransactionResponse) any
	Span    trace.Span // see Get
}

// TransactionResponse answers Transaction.
type TransactionResponse struct{ answer }

// Result returns the error that Atomically would have returned.
func (r *TransactionResponse) Result() (struct{}, error) { return struct{}{}, r.err }

func (m *Transaction) run(a *replica, respond func(any)) {
	end := a.traced(m.Span, m)
	answer := func(_ core.Done, err error) {
		end(err)
		adapted(a.l.r, &TransactionResponse{answer{"", m.Echo, err}}, m.Adapt, respond)
	}
	if err := cmp.Or(m.At.validate(), given(m.Modify != nil), a.admit(m.At, "")); err != nil {
		answer(core.Done{}, err)
		return
	}
	a.expect(m.operation())
	a.updateEither(m.At, m.Timeout, m.Adapt != nil, func(t *Tx) error {
		defer a.l.r.beginUserCall(new("a transaction")).done()
		if err := t.run(m.Modify); err != nil {
			return err
		}
		return t.fits(a.l)
	}, answer)
}

func (m *Transaction) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, &TransactionResponse{answer{"", m.Echo, err}}, m.Adapt, respond)
}

// run runs the modify function and saves the opened entries.
func (tx *Tx) run(modify func(*Tx) error) error {
	w, end := hosted.Writer[*crdt.Writer](tx.txn.Dot(), tx.txn.Stamp())
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

// fits returns an error if the transaction's entries exceed a limit.
func (tx *Tx) fits(l *binding) error {
	added := 0
	for _, o := range tx.open {
		if err := l.fits(o.id, o.base, tx.txn.Get(o.id), &added); err != nil {
			return err
		}
	}
	return nil
}

// maxKeys bounds the entries of a transaction.
const maxKeys = 100_000

// of returns the working copy of the domain that an entry belongs to. If the entries opened before
// belong to the other domain, of fails the transaction and returns nil.
func (tx *Tx) of(id string) *history.Txn {
	if tx.keys++; tx.keys > maxKeys {
		tx.Fail(fmt.Errorf("%w: a transaction changes at most %d entries", crdt.ErrTooLarge, maxKeys))
		return nil
	}
	txn := tx.volatile
	if tx.durableKeys.durable(id) {
		txn = tx.durable
	}
	switch {
	case txn == nil:
		tx.Fail(fmt.Errorf("key %q: %w", id, ErrLoading))
		return nil
	case txn == tx.txn:
	case tx.first == "" && tx.Err() == nil:
		// It ends with the writer it replaces.
		w, _ := hosted.Writer[*crdt.Writer](txn.Dot(), txn.Stamp())
		tx.txn, *tx.Writer = txn, *w
	default:
		of := [...]string{"volatile", "durable"}
		if txn == tx.durable {
			of = [...]string{"durable", "volatile"}
		}
		tx.Fail(fmt.Errorf("%w: key %q is %s and key %q is %s: see Config.Durable", ErrInvalid, id,
			of[0], tx.first, of[1]))
		return nil
	}
	tx.first = cmp.Or(tx.first, id)
	return txn
}

// errElsewhere rejects an update in the domain that a transaction does not touch. No caller sees
// it.
var errElsewhere = errors.New("distributeddata: the transaction is of the other domain")

// elsewhere reports whether err is errElsewhere. It calls no method of err, which may be the
// application's.
func elsewhere(err error) bool { return err == errElsewhere } //nolint:errorlint // never wrapped

// updateEither begins a transaction on volatile keys or on durable ones. Which of the two shows
// only when modify has run. It runs once, inside a step of both domains, and one of the two steps
// is then rejected.
func (a *replica) updateEither(at Consistency, timeout time.Duration, adapted bool,
	modify func(*Tx) error, done func(core.Done, error)) {
	if a.durable == nil || a.durable.loading() {
		a.update(a.volatile, at, timeout, "", adapted, func(t *history.Txn) error {
			return modify(&Tx{volatile: t, txn: t, durableKeys: a.l.r.durableKeys,
				stamper: a.l.ttls.stamper(
					0), now: a.l.published.Load()})
		}, done)
		return
	}
	answer := func(d core.Done, err error) {
		if !elsewhere(err) {
			done(d, err)
		}
	}
	a.update(a.volatile, at, timeout, "", adapted, func(volatile *history.Txn) error {
		a.expect(operation{"atomically", at}, "")
		theirs := errElsewhere // unless the transaction turns out to be volatile
		a.update(a.durable, at, timeout, "", adapted, func(durable *history.Txn) error {
			tx := &Tx{volatile: volatile, durable: durable, txn: volatile,
				durableKeys: a.l.r.durableKeys,
				stamper:     a.l.ttls.stamper(0), now: a.l.published.Load()}
			if err := modify(tx); err != nil || tx.txn == durable {
				return err
			}
			theirs = nil
			return errElsewhere
		}, answer)
		return theirs
	}, answer)
}

// In returns the value of the entry inside a transaction, to be read and changed in place. Calling
// it again returns the same pointer. The whole transaction fails for an entry of another type, a
// permanently deleted entry or an invalid key.
func (k Key[T]) In(tx *Tx) *T {
	v := k.empty()
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
	err := k.editable(&v, base, txn.Seen())
	if err != nil {
		tx.Fail(err)
		return &v
	}
	o := &opened{k.id, base, &v, func() error {
		next, err := hosted.Save(tx.Writer, base, &v)
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

// DeleteIn deletes the entry inside a transaction, as Delete does. It undoes earlier changes of the
// transaction to the entry. A value that In returned before must not be used afterwards.
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

// Snapshot is the state of this member's replica at one instant. It is immutable and may be kept.
// It costs memory only for what has changed since.
type Snapshot struct{ p *replicatorView }

// Snapshot returns the current state. Reads of several entries from one Snapshot are consistent:
// they show all of an atomic update or none of it.
func (r *Replicator) Snapshot() Snapshot { return Snapshot{r.readable()} }

// Of reads the entry in a snapshot. It returns the errors of Get at Local.
func (k Key[T]) Of(s Snapshot) (T, error) {
	if s.p == nil {
		return k.empty(), ErrClosed
	}
	h := s.p.of(k.id)
	if h.loading() {
		return k.empty(), fmt.Errorf("key %q: %w", k.id, ErrLoading)
	}
	v, _, err := k.read(s.p, h, nil)
	return v, err
}

// editable decodes the value in a store into v, for an update. If it fails, v is empty.
func (k Key[T]) editable(v *T, s causal.Store, seen causal.Vector) error {
	if permanentlyDeleted(s) {
		return fmt.Errorf("key %q: %w", k.id, ErrDeleted)
	}
	*v = k.empty()
	err := guarded(func() error { return hosted.Load(v, s, seen) }) // runs codecs
	if err != nil {
		*v = k.empty()
		return fmt.Errorf("key %q: %w", k.id, err)
	}
	return nil
}
