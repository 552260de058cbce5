package distributeddata

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// Key names an entry and fixes its type, its codecs and its empty value. Keys are cheap values:
// declare them as package variables, or create them as needed. Using one name with different types
// returns ErrType.
//
// The methods of Key are direct calls, for goroutines that may block. An actor instead sends the
// messages Get, Update, Delete and Subscribe to Replicator.PID.
type Key[T crdt.Value[T]] struct {
	id   string
	none *T             // the empty value; nil in the zero Key. A pointer keeps requests small
	last *valueCache[T] // nil if values are not remembered
	of   *layout        // of the collection that this entry is a shard of; nil: none
}

// empty returns the value of a missing entry.
func (k Key[T]) empty() (v T) {
	if k.none != nil {
		v = *k.none
	}
	return v
}

// NewKey returns the key of the entry id. The id must be valid UTF-8 of 1 to 512 bytes and must not
// end with a star, which other systems take for a prefix; see NewPrefix. With any other id every
// operation returns ErrInvalid. empty is the value of a missing entry; it also supplies the codecs,
// as in NewKey("points", crdt.NewORSet(crdt.JSON[point]())).
//
// A key remembers the last value read through it for as long as the key is reachable, so reading an
// unchanged entry again costs next to nothing.
func NewKey[T crdt.Value[T]](id string, empty T) Key[T] {
	return Key[T]{id: id, none: &empty, last: newValueCache[T]()}
}

// ID returns the name of the entry.
func (k Key[T]) ID() string { return k.id }

func (k Key[T]) String() string { return k.id }

// Get reads the entry. At Local, the default level, it reads this member's replica. It does not
// wait for the replicator, except for durable keys during startup; see Config.Store. It sees every
// update of this member that has returned. While the member rejoins it returns the last value. At
// other levels it waits until this replica has seen everything that the required number of replicas
// had seen when they were asked, or until ctx is done.
//
// Errors: ErrNotFound and ErrDeleted (with the empty value), ErrType, ErrQuorum, ErrUnknown,
// node.ErrRejoining (not at Local), ErrLoading, ErrStore (of durable keys), ErrClosed, ErrInvalid.
func (k Key[T]) Get(ctx context.Context, r *Replicator, at ...Consistency) (T, error) {
	level := ofRead(at)
	if level == Local && r != nil {
		now := r.entry(k.id) // before the published state
		p := r.published()
		if p == nil {
			return k.empty(), r.unreadable()
		}
		if h := p.of(k.id); !h.loading() {
			v, renewAt, err := k.read(p, h, now)
			if renewAt != 0 {
				r.used(k.id, renewAt)
			}
			return v, err
		}
	}
	return call[*GetResponse[T]](ctx, r, k.empty(), &Get[T]{Key: k, At: level})
}

// Update changes the entry and returns its value after the change. modify runs once, on a private
// copy of the value: it must be quick, must not block, and must not retain w or v. A direct call in
// it, other than a read at Local, returns ErrInvalid. While modify runs, other calls wait until
// their time is up, also some that came before: updates of several callers become readable and are
// answered together, within a millisecond if no function delays them. If modify returns an error,
// panics or calls runtime.Goexit, or if a mutator or a codec fails, nothing changes and the error
// is ErrModify. Otherwise the change is applied here at once and pushed to the other replicas.
// Update returns when as many replicas have the change as the level requires, or with ErrQuorum.
//
// At Local, modify runs on the goroutine of the caller, unless the key is
// durable. Update then takes as long as modify does, whatever ctx says, and runtime.Goexit in
// modify ends that goroutine. At other levels, and for messages, modify runs on the replicator's
// goroutine.
//
// All changes that modify makes to the entry form one event: every replica shows all of them or
// none. An update that changes nothing sends nothing.
//
// Errors: ErrModify, ErrDeleted, ErrType, ErrLimit, ErrQuorum, ErrUnknown, node.ErrRejoining,
// ErrClosed, ErrInvalid; of durable keys ErrStore, ErrLoading.
func (k Key[T]) Update(ctx context.Context, r *Replicator, modify func(w *crdt.Writer, v *T) error,
	at Consistency, opts ...Option) (T, error) {
	o := r.options(opts)
	if at == Local && r != nil && !r.durableKeys.durable(k.id) {
		if l := r.present.Load(); l != nil && l.state.Load() == running {
			v, err := k.here(ctx, l, localUpdate[T]{modify, o.ttl, false})
			if err != errStep { //nolint:errorlint // never wrapped
				return v, err
			}
		}
	}
	return call[*UpdateResponse[T]](ctx, r, k.empty(), &Update[T]{Key: k, Modify: modify,
		At: at, TTL: o.ttl})
}

// Subscribe sends each change to an actor of this member, as the message Subscribe does. A
// subscription made before the replica runs takes effect when it runs. It ends when stop is called,
// when the actor stops, or with the incarnation of the member. A subscription that cannot be
// accepted, after Close or while the member rejoins, is logged and goes to the dead letters.
func (k Key[T]) Subscribe(r *Replicator, to *actor.PID, adapt func(*Changed[T]) any) (stop func()) {
	return subscribeTo(r, k, to, adapt)
}

// read returns the value in a published state, whose view h the key belongs to, or of o if that is
// not nil; and the time from which reading it must be announced as a use; see lifetimes.renewAt.
func (k Key[T]) read(p *replicatorView, h *domainView, o *openEntry) (v T, renewAt int64,
	err error) {
	number := h.number
	if o != nil {
		number = o.number
	}
	if was := k.last.at(number); was != nil {
		return was.value, was.renewAt, nil
	}
	if err := cmp.Or(k.usable(), k.of.check(p)); err != nil {
		return k.empty(), 0, err
	}
	now := p.get(k.id)
	if o != nil {
		now = p.ttls.view(k.id, o.held, o.seen)
	}
	if v, err = k.load(now.store, now.seen); err == nil {
		renewAt = p.ttls.renewAt(now)
		k.last.keep(number, v, renewAt)
	}
	return v, renewAt, err
}

func (k Key[T]) load(s causal.Store, seen causal.Vector) (v T, err error) {
	if s.Empty() {
		return k.empty(), fmt.Errorf("key %q: %w", k.id, ErrNotFound)
	}
	err = k.editable(&v, s, seen)
	return v, err
}

// localUpdate is an update at Local of a volatile key.
type localUpdate[T any] struct {
	modify func(*crdt.Writer, *T) error
	ttl    time.Duration
	actor  bool // it is made on the goroutine of the actor
}

// here makes an update on this goroutine. With errStep nothing was done: the update must be a step
// of the core.
func (k Key[T]) here(ctx context.Context, l *binding, u localUpdate[T]) (v T, err error) {
	if err := cmp.Or(k.valid(Local), given(u.modify != nil), l.validTTL(k.id,
		u.ttl)); err != nil {
		return k.empty(), err
	}
	// Names with this character may be those of a collection, whose entries show how it is divided:
	// a step publishes a new one at once.
	if strings.IndexByte(k.id, '#') >= 0 && l.published.Load().get(k.id).gone() {
		return v, errStep
	}
	v, tell, err := k.locked(ctx, l, u)
	if tell && !u.actor {
		l.front.tell()
	}
	return v, err
}

// locked makes the update while it holds the lock of the core, which it gives back even if modify
// ends the goroutine.
func (k Key[T]) locked(ctx context.Context, l *binding, u localUpdate[T]) (v T, tell bool,
	err error) {
	f := l.front
	if err = f.enter(ctx, k.id, u.actor); err != nil {
		return k.empty(), false, err
	}
	defer f.leave()
	l.r.number.run(func() {
		tell, err = f.update(k.id, func(t *history.Txn) (err error) {
			v, err = k.change(t, l, u.modify, u.ttl)
			return err
		})
	})
	if err != nil {
		v = k.empty()
	}
	return v, tell, err
}

// change makes an update part of t, and returns the value after it.
func (k Key[T]) change(t *history.Txn, l *binding, modify func(*crdt.Writer, *T) error,
	ttl time.Duration) (v T, err error) {
	if err = k.of.check(l.published.Load()); err != nil {
		return k.empty(), err
	}
	was := t.Get(k.id)
	if v, err = k.modified(t, l.ttls.stamper(ttl), modify); err == nil {
		err = l.fits(k.id, was, t.Get(k.id), new(int))
	}
	if err != nil {
		v = k.empty()
	}
	return v, err
}

// modified runs a modify function inside the update t and returns the value after it.
func (k Key[T]) modified(t *history.Txn, s stamper, modify func(*crdt.Writer, *T) error) (v T,
	err error) {
	was := t.Get(k.id)
	base := content(was)
	if err = k.editable(&v, base, t.Seen()); err != nil {
		return k.empty(), err
	}
	w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
	defer end()
	next := base
	err = guarded(func() (err error) {
		if err = modify(w, &v); err != nil {
			return err
		}
		if err = w.Err(); err != nil {
			return err
		}
		next, err = hosted.Save(w, base, &v) // runs codecs
		return err
	})
	if err != nil {
		return k.empty(), refused(k.id, err)
	}
	is := s.stamped(t, k.id, was, base, next)
	t.Put(k.id, is)
	hosted.Saved(&v, next, t.After(!is.Same(was)))
	return v, nil
}

// Option modifies one Update or Delete: see ExpireAfter and Permanently.
type Option interface{ apply(*options) }

type options struct {
	permanently bool
	ttl         time.Duration // 0: not given; negative: invalid
}
