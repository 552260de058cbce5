package distributeddata

import (
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// Prefix names all entries whose names begin with a string, and fixes their type. It can be listed
// and subscribed to. Key returns the key of one of the entries, to read and change it. The empty
// prefix names every entry of a replicator. Prefixes are cheap values.
//
//	var Carts = distributeddata.NewPrefix("cart-", crdt.ORSet[string]{})
//
//	_, err := Carts.Key("17").Update(ctx, dd, add("milk"), distributeddata.Majority)
//	for c := range Carts.Changes(ctx, dd) {
//		fmt.Println(c.Key, c.Value)
//	}
type Prefix[T crdt.Value[T]] struct {
	text string
	none *T // see Key
}

// NewPrefix returns the prefix text, which must be valid UTF-8 of at most 512 bytes. empty is as in
// NewKey. A star is not a wildcard: NewPrefix("cart-", …) is what other systems write as "cart-*",
// and a prefix that ends with a star is ErrInvalid.
func NewPrefix[T crdt.Value[T]](text string, empty T) Prefix[T] { return Prefix[T]{text, &empty} }

// Key returns the key of the entry whose name is the prefix followed by rest.
func (p Prefix[T]) Key(rest string) Key[T] {
	return Key[T]{id: p.text + rest, none: p.none, last: newValueCache[T]()}
}

// Rest returns the part of a key's name after the prefix. ok is false if the name does not begin
// with the prefix.
func (p Prefix[T]) Rest(k Key[T]) (rest string, ok bool) { return strings.CutPrefix(k.id, p.text) }

// String returns the prefix.
func (p Prefix[T]) String() string { return p.text }

// Of yields the entries in a snapshot, in the order of their names. It skips entries of another
// type and entries that cannot be decoded.
func (p Prefix[T]) Of(s Snapshot) iter.Seq2[Key[T], T] {
	return func(yield func(Key[T], T) bool) {
		for id, now := range s.p.entries(p.text, p.text) {
			k := p.named(id)
			if v, err := k.load(now.store, now.seen); err == nil && !yield(k, v) {
				return
			}
		}
	}
}

// Subscribe sends each change to an actor of this member; see the message Subscribe, and
// Key.Subscribe.
func (p Prefix[T]) Subscribe(r *Replicator, to *actor.PID,
	adapt func(*Changed[T]) any) (stop func()) {
	return subscribeTo(r, p, to, adapt)
}

// named returns the key of an entry found in the state. The program did not declare this key, so it
// has no valueCache.
func (p Prefix[T]) named(id string) Key[T] { return Key[T]{id: causal.Clone(id), none: p.none} }

// Entries is what can be subscribed to: a Key or a Prefix.
type Entries[T crdt.Value[T]] interface {
	// pattern returns the name or the prefix of the names, or an error if it is not valid.
	pattern() (text string, exact bool, err error)
	named(id string) Key[T]
	fmt.Stringer
}

func (k Key[T]) pattern() (string, bool, error) { return k.id, true, k.usable() }

func (k Key[T]) named(string) Key[T] { return k }

func (p Prefix[T]) pattern() (string, bool, error) {
	var why string
	switch {
	case len(p.text) > history.MaxKey:
		why = fmt.Sprintf("prefix has %d bytes, over the limit of %d", len(p.text), history.MaxKey)
	case !utf8.ValidString(p.text):
		why = fmt.Sprintf("prefix %q is not UTF-8", p.text)
	case strings.HasSuffix(p.text, "*"):
		why = fmt.Sprintf("prefix %q ends with a star: write %q", p.text,
			strings.TrimRight(p.text, "*"))
	default:
		return p.text, false, nil
	}
	return "", false, fmt.Errorf("%w: %s", ErrInvalid, why)
}

// usable returns ErrInvalid if no entry can have the key's name.
func (k Key[T]) usable() error {
	if k.of != nil {
		return k.of.bad
	}
	if err := history.CheckKey(k.id); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if strings.HasSuffix(k.id, "*") {
		return fmt.Errorf("%w: key %q ends with a star: for a prefix use NewPrefix(%q, …)",
			ErrInvalid, k.id, strings.TrimRight(k.id, "*"))
	}
	return nil
}
