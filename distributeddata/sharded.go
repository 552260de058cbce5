package distributeddata

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
)

const (
	// maxShards is the largest number of shards of a ShardedMap or a ShardedSet.
	maxShards = 1 << 16
	// maxCollection bounds the name of a collection in bytes. With everything that follows it, the
	// name of a shard stays far below the bound on an entry's name.
	maxCollection = 256
)

// layout maps a collection to entries. Shard 255 of 1024 of the collection "users" is the entry
//
//	users#ORMap[string]LWWRegister[custom]#1024#00ff
//
// Entries of another number of shards, or of another type, thus never mix with these and can be
// detected.
type layout struct {
	name    string
	types   string
	shards  int
	family  string        // prefix of the collection's entries in any layout
	own     string        // prefix of the entries of this layout
	after   string        // the first name after all names that begin with own
	bad     error         // why the layout is not valid
	checked atomic.Uint64 // domainView.number of a state that had no other layout
}

func newLayout(name, types string, shards int) *layout {
	l := &layout{name: name, types: types, shards: shards, family: name + "#"}
	l.own = l.family + types + "#" + strconv.Itoa(shards) + "#"
	l.after = l.own[:len(l.own)-1] + "$" // '$' is the next character after '#'
	if why := l.wrong(); why != "" {
		l.bad = fmt.Errorf("%w: %s", ErrInvalid, why)
	}
	return l
}

// wrong says why a layout is not valid; it returns "" for a valid one.
func (l *layout) wrong() string {
	switch {
	case l.name == "":
		return "the name of a sharded collection is empty, or no constructor has made it"
	case len(l.name) > maxCollection:
		return fmt.Sprintf("the name of a sharded collection has %d bytes, over the limit of %d",
			len(l.name), maxCollection)
	case !utf8.ValidString(l.name):
		return fmt.Sprintf("the name %q of a sharded collection is not UTF-8", l.name)
	case strings.ContainsAny(l.name, "#*"):
		return fmt.Sprintf("the name %q of a sharded collection has a %q in it", l.name,
			l.name[strings.IndexAny(l.name, "#*")])
	case l.shards < 1 || l.shards > maxShards:
		return fmt.Sprintf("collection %q has %d shards, must be from 1 to %d", l.name, l.shards,
			maxShards)
	}
	return ""
}

// id returns the name of the shard for an element with this canonical encoding. The hash is part of
// the layout and never changes.
func (l *layout) id(encoded []byte) string {
	if l.bad != nil {
		return l.name
	}
	n := xxhash.Sum64(encoded) % uint64(l.shards)
	var buf [maxCollection + 128]byte
	b := append(buf[:0], l.own...)
	for shift := 12; shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[n>>shift&15])
	}
	return string(b)
}

// check returns an error if a state holds entries of the collection in another layout. An entry
// that is not a shard has a nil layout.
func (l *layout) check(p *replicatorView) error {
	if l == nil || p == nil {
		return nil
	}
	number, single := l.state(p)
	if single && l.checked.Load() == number {
		return nil
	}
	if id := l.stray(p); id != "" {
		return l.differs(id)
	}
	if single {
		l.checked.Store(number)
	}
	return nil
}

// state returns the state number of the domain that holds the collection. single is false if the
// collection may be spread over both domains.
func (l *layout) state(p *replicatorView) (number uint64, single bool) {
	switch volatile, durable := p.durableKeys.below(l.family); {
	case !durable:
		return p.number, true
	case !volatile:
		return p.durable.number, true
	}
	return 0, false
}

// stray returns the name of an entry of the collection in another layout, or "" if there is none.
func (l *layout) stray(p *replicatorView) string {
	for id, now := range p.entries(l.family, l.family) {
		if id >= l.own {
			break
		}
		if !now.store.Empty() {
			return causal.Clone(id)
		}
	}
	for id, now := range p.entries(l.family, l.after) {
		if !now.store.Empty() {
			return causal.Clone(id)
		}
	}
	return ""
}

// differs returns an error that says how the layout of the entry id differs from this one.
func (l *layout) differs(id string) error {
	part := strings.Split(strings.TrimPrefix(id, l.family), "#")
	switch {
	case len(part) == 3 && part[0] != l.types:
		return fmt.Errorf("%w: collection %q is of %s here, but entry %q exists, of %s", ErrType,
			l.name, l.types, id, part[0])
	case len(part) == 3:
		return fmt.Errorf("%w: collection %q has %d shards here, but entry %q exists, of %s shards: every program must give the same number; "+
			"Clear removes the entries of a wrong layout", ErrInvalid, l.name, l.shards, id,
			part[1])
	}
	return fmt.Errorf("%w: entry %q lies among the shards of collection %q", ErrInvalid, id, l.name)
}

// sharded is the common part of ShardedMap and ShardedSet: a layout of entries of one type.
type sharded[T crdt.Value[T]] struct {
	*layout
	none *T // see Key
}

// unmade is the layout of a collection that no constructor has made.
var unmade = newLayout("", "", 0)

// orInvalid returns s, or for the zero value a collection whose operations return ErrInvalid.
func (s sharded[T]) orInvalid() sharded[T] {
	if s.layout == nil {
		return sharded[T]{unmade, new(T)}
	}
	return s
}

// shard returns the key of the shard for the element that encode, a codec of the application,
// encodes.
func (s sharded[T]) shard(encode func(dst []byte) ([]byte, error)) (Key[T], error) {
	k := Key[T]{id: s.name, none: s.none, of: s.layout}
	if s.bad != nil {
		return k, s.bad
	}
	var buf [96]byte
	b := buf[:0]
	if err := guarded(func() (err error) { b, err = encode(b); return err }); err != nil {
		return k, fmt.Errorf("%w: collection %q: %w", ErrInvalid, s.name, err)
	}
	k.id = s.id(b)
	return k, nil
}

// in returns the value of a shard inside a transaction. If it is not usable, in fails the
// transaction and returns nil.
func (s sharded[T]) in(tx *Tx, encode func(dst []byte) ([]byte, error)) *T {
	k, err := s.shard(encode)
	if err != nil {
		tx.Fail(err)
		return nil
	}
	v := k.In(tx)
	if tx.Err() != nil {
		return nil
	}
	return v
}

// pattern implements Entries. It also covers entries of other layouts, which are reported as
// errors.
func (s sharded[T]) pattern() (string, bool, error) { return s.family, false, s.bad }

func (s sharded[T]) named(id string) Key[T] { return Key[T]{id: causal.Clone(id), none: s.none} }

// String returns the name of the collection.
func (s sharded[T]) String() string { return s.name }

// usable returns an error if the collection cannot be read in a snapshot.
func (s sharded[T]) usable(now Snapshot) error {
	switch {
	case s.bad != nil:
		return s.bad
	case now.p == nil:
		return ErrClosed
	case now.p.of(s.own).loading():
		return fmt.Errorf("collection %q: %w", s.name, ErrLoading)
	}
	return s.check(now.p)
}

// of yields the values of the shards in a snapshot.
func (s sharded[T]) of(now Snapshot) iter.Seq[T] {
	return func(yield func(T) bool) {
		for id, at := range now.p.entries(s.own, s.own) {
			if v, err := s.named(id).load(at.store, at.seen); err == nil && !yield(v) {
				return
			}
		}
	}
}

// at returns the value in a snapshot of the shard for the element that encode encodes. The result
// is false if that value cannot be determined.
func (s sharded[T]) at(now Snapshot, encode func(dst []byte) ([]byte, error)) (T, bool) {
	k, err := s.shard(encode)
	if err != nil {
		return k.empty(), false
	}
	at := now.p.get(k.id)
	v, err := k.load(at.store, at.seen)
	return v, err == nil
}

// clear deletes one shard after the other. The first delete makes earlier messages visible, and the
// last one waits for all.
func (s sharded[T]) clear(ctx context.Context, r *Replicator, at Consistency) error {
	if s.bad != nil {
		return s.bad
	}
	first := s.named(s.own + "0000")
	if err := first.Delete(ctx, r, Local); err != nil {
		return err
	}
	for id := range r.readable().entries(s.own, s.own) {
		if err := s.named(id).Delete(ctx, r, Local); err != nil {
			return err
		}
	}
	return first.Delete(ctx, r, at)
}

// get reads a shard; an empty shard is not an error.
func (s sharded[T]) get(ctx context.Context, r *Replicator, encode func(dst []byte) ([]byte, error),
	at []Consistency) (T, error) {
	k, err := s.shard(encode)
	if err != nil {
		return k.empty(), err
	}
	v, err := k.Get(ctx, r, at...)
	if absent(err) {
		err = nil
	}
	return v, err
}

// absent reports whether err only says that the entry does not exist.
func absent(err error) bool { return errors.Is(err, ErrNotFound) }
