package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/concord-go/concord/internal/causal"
)

// Fits returns an error if an update must not make the atoms of a key take so many bytes. nil:
// there is no limit.
type Fits func(key string, bytes int) error

// Txn is the working copy of one update. Nothing changes unless Modify returns nil.
type Txn struct {
	open  *openEvents
	keys  Keys // the committed ones
	fits  Fits
	dot   causal.Dot
	stamp uint64
	work  []*working          // in the order of first use; by key once Modify has returned
	index map[string]*working // index of a large work
	room  [1]*working         // buffer for the work of most updates
}

// working is the effect of an event on a key, so far.
type working struct {
	key     string
	before  causal.Store // when the event began
	base    causal.Store // the base of the event's changes: without atoms once cleared
	was     causal.Store // the base of this update's changes: base, or what earlier updates left
	next    causal.Store
	bytes   int // of next, as far as it has been checked
	cleared bool
	change  causal.Change // from was to next
}

// Dot returns the dot of the event that the update will be, or be a part of.
func (t *Txn) Dot() causal.Dot { return t.dot }

// Stamp returns the hybrid logical time of the update: 48 bits of milliseconds and 16 bits of a
// counter. It grows with every update of a replica.
func (t *Txn) Stamp() uint64 { return t.stamp }

// Seen returns what the replica had seen before the event.
func (t *Txn) Seen() causal.Vector { return t.open.seen() }

// After returns what the replica will have seen after the event, if the update changes anything.
func (t *Txn) After(changes bool) causal.Vector {
	if !changes && !t.open.using {
		return t.Seen()
	}
	return t.open.seenUpTo(t.dot.N)
}

// Get returns the atoms of a key, including the update's changes so far.
func (t *Txn) Get(key string) causal.Store { return t.at(key).next }

// Put replaces the atoms of a key with a version that mutators have changed.
func (t *Txn) Put(key string, s causal.Store) { t.at(key).next = s }

// Clear removes everything under a key that this replica has seen [R13], and everything that the
// event has added there.
func (t *Txn) Clear(key string) {
	w := t.at(key)
	w.clear(w.before.ResetPrefix("", t.Dot()))
}

// clear replaces the removals on the key by one of everything that this replica has seen there.
func (w *working) clear(empty causal.Store) {
	w.base, w.was, w.next, w.bytes, w.cleared = empty, empty, empty, 0, !w.before.Empty()
}

// manyAtoms is the number of paths from which on removing all of them is sent, and applied, as one
// removal of everything: it names a vector and not the atoms.
const manyAtoms = 1000

func (t *Txn) at(key string) *working {
	if w := t.find(key); w != nil {
		return w
	}
	w := t.open.working(key, t.keys)
	if t.work == nil {
		t.work = t.room[:0]
	}
	t.work = append(t.work, w)
	if t.index != nil {
		t.index[key] = w
	}
	return w
}

// few is the largest number of keys of an update that is searched linearly.
const few = 16

func (t *Txn) find(key string) *working {
	if t.index == nil && len(t.work) > few {
		t.index = make(map[string]*working, 4*few)
		for _, w := range t.work {
			t.index[w.key] = w
		}
	}
	if t.index != nil {
		return t.index[key]
	}
	for _, w := range t.work {
		if w.key == key {
			return w
		}
	}
	return nil
}

// run calls modify on the working copy and validates its changes.
func (t *Txn) run(modify func(*Txn) error) error {
	if err := modify(t); err != nil {
		return err
	}
	if len(t.work) > 1 {
		slices.SortFunc(t.work, func(a, b *working) int { return strings.Compare(a.key, b.key) })
	}
	for _, w := range t.work {
		if w.next.Empty() && w.before.Len() >= manyAtoms {
			w.clear(w.next)
		}
		var err error
		if w.change, err = causal.BetweenSince(w.was, w.next, t.dot.N-1, t.dot,
			w.change); err != nil {
			return fmt.Errorf("key %q: %w", w.key, err)
		}
		if err := checkChange(w.key, w.change); err != nil {
			return fmt.Errorf("key %q: %w", w.key, err)
		}
		if err := w.fits(t.fits); err != nil {
			return err
		}
	}
	return nil
}

// fits counts the bytes that the change adds and takes away, and asks whether there may be so many.
func (w *working) fits(fits Fits) error {
	added, gone := 0, 0
	for _, a := range w.change.Adds {
		added += atomBytes(a.Path, a.Leaf)
	}
	for _, a := range w.change.Removes {
		e, _ := w.was.Get(a.Path)
		l, _ := e.Of(a.Replica)
		gone += atomBytes(a.Path, l)
	}
	w.bytes += added - gone
	if fits == nil || added <= gone {
		return nil
	}
	return fits(w.key, w.bytes)
}

// checkChange rejects what a receiver would reject [R21]. The size of a change as a whole is not
// bounded: a change that does not fit into one message or record is sent in parts.
func checkChange(key string, c causal.Change) error {
	if c.Empty() {
		return nil
	}
	for _, a := range c.Adds {
		switch {
		case len(a.Path) == 0 || len(a.Path) > causal.MaxPath:
			return fmt.Errorf("%w: path of %d bytes, limit %d", causal.ErrTooLarge, len(a.Path),
				causal.MaxPath)
		case len(a.Payload) > causal.MaxState:
			return fmt.Errorf("%w: element of %d bytes, limit %d", causal.ErrTooLarge,
				len(a.Payload), causal.MaxState)
		}
	}
	return CheckKey(key)
}

// MaxKey is the length of a key in bytes.
const MaxKey = 512

// CheckKey returns an error if a key is not valid.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("key is empty")
	case len(key) > MaxKey:
		return fmt.Errorf("key has %d bytes, over the limit of %d", len(key), MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q is not UTF-8", key)
	}
	return nil
}
