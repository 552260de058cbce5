package distributeddata

import (
	"cmp"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/core"
)

// Messages for actors, which must not block: make them with the methods of a Key, or as literals, and send them with
// Replicator.Request, or with ctx.Request to Replicator.PID. The response goes to the sender, or what Adapt makes of
// it, so that an actor gets a message of its own protocol:
//
//	dd.Request(ctx, Cart.UpdateMessage(add("milk"), distributeddata.Majority).Then(func(v Items, err error) any {
//		return &added{"milk", err}
//	}))
//
// Without Adapt, every response is a Response, to which the asker's Echo comes back.
//
// Messages are for the replicator of the same member and are never serialised; send a pointer, and do not
// change it afterwards. Replicator.Request takes nothing else; one that is sent by value in another way is carried out
// too. Adapt runs on the replicator's goroutine, or on the sender's if the request cannot be handed over. If it panics or
// calls runtime.Goexit, the response goes out as it is; that is counted in Status.Faults, and logged at most once a
// second. The replicator answers or carries out every request; a message that is none becomes a dead letter.
type (
	// Get reads an entry, as Key.Get does, and is answered with *GetResponse[T].
	Get[T crdt.Value[T]] struct {
		Key     Key[T]
		At      Consistency
		Timeout time.Duration // 0: Config.OperationTimeout
		Echo    any           // comes back in the response; so in all messages
		Adapt   func(*GetResponse[T]) any
	}
	// Update changes an entry, as Key.Update does, and is answered with *UpdateResponse[T]. Sent without a sender,
	// with ctx.Send, at Local and without Adapt, it is the cheapest way to make many changes: nobody is answered,
	// what fails is logged, and what follows at once goes to the other replicas as one event, which costs
	// what its changes amount to. The same holds for Delete and Transaction.
	Update[T crdt.Value[T]] struct {
		Key     Key[T]
		Modify  func(w *crdt.Writer, v *T) error
		At      Consistency
		TTL     time.Duration // see ExpireAfter; 0: as it is
		Timeout time.Duration
		Echo    any
		Adapt   func(*UpdateResponse[T]) any
	}
	// Delete removes an entry, as Key.Delete does, and is answered with *DeleteResponse[T].
	Delete[T crdt.Value[T]] struct {
		Key         Key[T]
		At          Consistency
		Permanently bool // see the option of that name
		Timeout     time.Duration
		Echo        any
		Adapt       func(*DeleteResponse[T]) any
	}
	// Subscribe asks for *Changed[T], or what Adapt makes of it (nil: nothing), at Subscriber, an actor of this
	// member: at once for each entry that is there, with an empty Old, and then after changes, which are gathered
	// for Config.NotifyInterval, so that intermediate values may be skipped. Key is a Key or a Prefix. A later
	// Subscribe of the same actor to the same replaces the earlier, and tells what is there again.
	//
	// An actor that has several subscriptions to an entry is told of a change once: through that to the key, or else
	// through that to the longest prefix. A slow one has at most 128 notices in its mailbox; of what changes while it
	// does not take them it is told the newest values alone, and nobody waits for it. (To know that it asks the actor
	// now and then, with an actor.AutoReceiveMessage that Proto.Actor answers: let it pass.)
	//
	// A subscription goes on when the replicator is restarted. It ends with Unsubscribe, with the subscriber or with the
	// life of the member: actors of the next one subscribe anew. One that cannot be taken is logged: ErrInvalid.
	Subscribe[T crdt.Value[T]] struct {
		Key        Entries[T]
		Subscriber *actor.PID
		Adapt      func(*Changed[T]) any
	}
	// Unsubscribe ends a Subscribe to the same Key or Prefix, and no other. A notice may already be on its way.
	Unsubscribe[T crdt.Value[T]] struct {
		Key        Entries[T]
		Subscriber *actor.PID
	}
)

// GetResponse answers Get.
type GetResponse[T crdt.Value[T]] struct {
	answer
	Key   Key[T]
	value T
}

// Result is what Key.Get would have returned.
func (r *GetResponse[T]) Result() (T, error) { return r.value, r.err }

// UpdateResponse answers Update.
type UpdateResponse[T crdt.Value[T]] struct {
	answer
	Key   Key[T]
	value T
}

// Result is what Key.Update would have returned.
func (r *UpdateResponse[T]) Result() (T, error) { return r.value, r.err }

// Changed tells a subscriber what became of an entry. What changed in a set or a map is
//
//	added, removed := c.Value.Diff(c.Old) // of a map: changed, removed
//
// at the cost of what changed, however large the value is.
//
// An entry is there while its value holds anything. So a set whose last element was removed is Deleted as one that
// Delete removed is, and the two cannot be told apart: where two members remove one half each, neither of them has
// emptied it. An entry that was deleted with Permanently has ErrDeleted. A counter that is at 0 is there.
type Changed[T crdt.Value[T]] struct {
	Key     Key[T] // of the entry, also for a subscription to a Prefix
	Value   T      // the empty value if the entry is not there any more
	Old     T      // what this subscriber was told before; the empty value at first
	Deleted bool   // the entry is not there any more: deleted or emptied
	// Expired says that the entry is Deleted, and that it had not been used for its time to live, as far as this subscriber was
	// told: see Config.Expiry. A Delete of an entry that was about to expire shows as this too.
	Expired bool
	// Err is ErrType: what lives under the key is of another type; ErrDeleted: it was deleted for good; or says why
	// the value could not be decoded, or what became of Adapt.
	Err error
}

// request is a message that the replicator's actor carries out.
type request interface {
	run(a *replica, respond func(any))
	// refuse responds that nothing was done, if there is a response.
	refuse(err error, r *Replicator, respond func(any))
}

// outlives reports whether a request may wait for the next life: an update does, which changes data; a
// subscription belongs to an actor of the life that ends.
func outlives(r request) bool {
	_, ok := r.(interface{ changesData() })
	return ok
}

func (m *Update[T]) changesData()   {}
func (m *Delete[T]) changesData()   {}
func (m *Transaction) changesData() {}

func (m *Get[T]) response(v T, err error) *GetResponse[T] {
	return &GetResponse[T]{answer{m.Key.id, m.Echo, err}, m.Key, v}
}

func (m *Update[T]) response(v T, err error) *UpdateResponse[T] {
	return &UpdateResponse[T]{answer{m.Key.id, m.Echo, err}, m.Key, v}
}

func (m *Get[T]) run(a *replica, respond func(any)) {
	answer := func(v T, err error) { adapted(a.l.r, m.response(v, err), m.Adapt, respond) }
	if err := cmp.Or(m.Key.valid(m.At), a.admit(m.At, m.Key.id)); err != nil {
		answer(m.Key.empty, err)
		return
	}
	if m.At == Local && m.Key.last != nil && !a.stopped {
		// What was sent before shows in the published state, unless an open event gathers it. Values of own
		// types take the long way: their codecs may end this goroutine, and what is pending is answered then.
		a.of(m.Key.id).settle()
		v, renewAt, err := m.Key.read(a.l.published.Load())
		a.l.r.used(m.Key.id, renewAt)
		answer(v, err)
		return
	}
	a.expect(m.operation())
	a.start(a.of(m.Key.id), m.Timeout, m.Key.id, false, func(id uint64, deadline time.Time) core.Event {
		return core.Read{ID: id, Level: m.At.level(), Deadline: deadline}
	}, func(d core.Done, err error) {
		p := a.l.published.Load()
		now := p.get(m.Key.id)
		if d.State != nil {
			h, _ := d.State.Keys.Get(m.Key.id)
			now = p.ttls.told(m.Key.id, h.Store, d.State.Seen)
		}
		a.l.r.used(m.Key.id, p.ttls.renewAt(p.get(m.Key.id)))
		v, unread := m.Key.empty, errExit // if a codec does not return
		defer func() { answer(v, cmp.Or(err, unread)) }()
		if unread = m.Key.of.check(p); unread != nil {
			return
		}
		defer a.l.r.host(&m.Key.id).done()
		v, unread = m.Key.load(now.store, now.seen)
	})
}

func (m *Get[T]) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, m.response(m.Key.empty, err), m.Adapt, respond)
}

func (m *Update[T]) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, m.response(m.Key.empty, err), m.Adapt, respond)
}

func (m *Update[T]) run(a *replica, respond func(any)) {
	res := m.response(m.Key.empty, nil)
	answer := func(_ core.Done, err error) {
		res.err = err
		adapted(a.l.r, res, m.Adapt, respond)
	}
	if err := cmp.Or(m.Key.valid(m.At), a.validTTL(m.Key.id, m.TTL), a.admit(m.At, m.Key.id)); err != nil {
		answer(core.Done{}, err)
		return
	}
	a.expect(m.operation())
	a.update(a.of(m.Key.id), m.At, m.Timeout, m.Key.id, m.Adapt != nil, func(t *core.Txn) (err error) {
		if err = m.Key.of.check(a.l.published.Load()); err != nil {
			return err
		}
		defer a.l.r.host(&m.Key.id).done()
		was := t.Get(m.Key.id)
		if res.value, err = m.Key.modified(t, a.l.ttls.stamper(m.TTL), m.Modify); err == nil {
			err = a.fits(m.Key.id, was, t.Get(m.Key.id), new(int))
		}
		if err != nil {
			res.value = m.Key.empty
		}
		return err
	}, answer)
}

// valid checks what a message asks for.
func (k Key[T]) valid(at Consistency) error {
	if err := k.usable(); err != nil {
		return err
	}
	return at.validate()
}
