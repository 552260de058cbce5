package distributeddata

import (
	"cmp"
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/trace"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/history"
)

// The messages for actors, which must not block. Send them with Replicator.Request, or with
// ctx.Request to Replicator.PID. The response goes to the sender. With Adapt, the sender gets the
// result of Adapt instead, and thus a message of its own protocol:
//
//	dd.Request(ctx, &distributeddata.Update[Items]{Key: Cart, Modify: add("milk"),
//		At: distributeddata.Majority,
//		Adapt: func(r *distributeddata.UpdateResponse[Items]) any {
//			return &added{"milk", r.Err()}
//		}})
//
// Without Adapt, every response is a Response. It carries the Echo of the request.
//
// If Span is a recorded span of the sender, such as trace.SpanFromContext(ctx), and the operation
// may wait for other members or for the disk, the operation is a child of it. The span of the
// operation begins when the replicator takes the message and ends with the response. Its attributes
// are those of direct calls, with concord.ddata.counted, the number of members that the level is
// counted over. An actor keeps the context of its own work, since messages of Proto.Actor carry
// none.
//
// Messages are for the replicator of the same member and are never serialised. Send a pointer, and
// do not change the message afterwards. Replicator.Request accepts pointers only; a message sent by
// value in another way is carried out too. Adapt runs on the replicator's goroutine, or on the
// sender's if the request cannot be delivered. If Adapt panics or calls runtime.Goexit, the
// unadapted response is sent; such failures are counted in Status.Faults and logged at most once a
// second. The replicator answers or carries out every request; any other message becomes a dead
// letter.
type (
	// Get reads an entry, as Key.Get does, and is answered with *GetResponse[T].
	Get[T crdt.Value[T]] struct {
		Key     Key[T]
		At      Consistency   // 0: Local
		Timeout time.Duration // 0: Config.OperationTimeout
		Echo    any           // copied to the response; the same in all messages
		Adapt   func(*GetResponse[T]) any
		Span    trace.Span // see below; the same in all messages
	}
	// Update changes an entry, as Key.Update does, and is answered with *UpdateResponse[T]. Sent
	// without a sender (ctx.Send), at Local and without Adapt, it is the cheapest way to make many
	// changes: nothing is answered, failures are logged, and consecutive updates travel to the
	// other replicas as one event, whose cost is that of their net effect. The same holds for
	// Delete and Transaction.
	Update[T crdt.Value[T]] struct {
		Key     Key[T]
		Modify  func(w *crdt.Writer, v *T) error
		At      Consistency   // must be stated
		TTL     time.Duration // see ExpireAfter; 0: unchanged
		Timeout time.Duration
		Echo    any
		Adapt   func(*UpdateResponse[T]) any
		Span    trace.Span
	}
	// Delete removes an entry, as Key.Delete does, and is answered with *DeleteResponse[T].
	Delete[T crdt.Value[T]] struct {
		Key         Key[T]
		At          Consistency // must be stated
		Permanently bool        // see the option of that name
		Timeout     time.Duration
		Echo        any
		Adapt       func(*DeleteResponse[T]) any
		Span        trace.Span
	}
	// Subscribe asks for *Changed[T], or the result of Adapt (nil: no message), to be sent to
	// Subscriber, an actor of this member. The replicator sends one at once for each existing
	// entry, with an empty Old, and then one after each change. It batches changes over
	// Config.NotifyInterval, so it may skip intermediate values. Key is a Key or a Prefix. A later
	// Subscribe of the same actor to the same Key or Prefix replaces the earlier one and sends the
	// existing entries again.
	//
	// An actor with several subscriptions to an entry is notified of a change once: through the
	// subscription to the key if there is one, else through the one to the longest prefix. The
	// replicator leaves at most 128 unread notices in the mailbox of a slow actor. It sends the
	// newest values of further changes later, and keeps no other subscriber waiting. (To find out
	// whether the actor keeps up, the replicator occasionally sends it an actor.AutoReceiveMessage
	// that Proto.Actor answers: ignore that message.)
	//
	// A subscription continues when the replicator is restarted. It ends with Unsubscribe, when the
	// subscriber stops, or with the incarnation of the member; actors of the next incarnation must
	// subscribe again. A subscription that cannot be accepted (ErrInvalid) is logged.
	Subscribe[T crdt.Value[T]] struct {
		Key        Entries[T]
		Subscriber *actor.PID
		Adapt      func(*Changed[T]) any
	}
	// Unsubscribe ends the Subscribe to the same Key or Prefix, and no other. A notice may already
	// be in flight.
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

// Result returns the value and error that Key.Get would have returned.
func (r *GetResponse[T]) Result() (T, error) { return r.value, r.err }

// UpdateResponse answers Update.
type UpdateResponse[T crdt.Value[T]] struct {
	answer
	Key   Key[T]
	value T
}

// Result returns the value and error that Key.Update would have returned.
func (r *UpdateResponse[T]) Result() (T, error) { return r.value, r.err }

// Changed notifies a subscriber of a change of an entry. The change in a set or a map is
//
//	added, removed := c.Value.Diff(c.Old) // of a map: changed, removed
//
// The cost is that of the change, however large the value is.
//
// An entry exists while its value holds anything. A set whose last element was removed is therefore
// Deleted, like one that Delete removed. The two cannot be told apart: if two members each remove
// one half of a set, neither of them has emptied it. For an entry deleted with Permanently, Err is
// ErrDeleted. A counter at 0 exists.
type Changed[T crdt.Value[T]] struct {
	Key     Key[T] // of the entry, also for a subscription to a Prefix
	Value   T      // the empty value if the entry no longer exists
	Old     T      // the value this subscriber was last sent; the empty value at first
	Deleted bool   // the entry no longer exists: it was deleted or emptied
	// Expired says that the entry is Deleted and had not been used for its time to live, according
	// to what this subscriber was sent; see Config.Expiry. A Delete of an entry that was about to
	// expire also sets Expired.
	Expired bool
	// Err is ErrType if the key holds a value of another type, and ErrDeleted if the entry was
	// permanently deleted. Otherwise it says why the value could not be decoded or how Adapt
	// failed.
	Err error
}

// request is a message that the replicator's actor carries out.
type request interface {
	run(a *replica, respond func(any))
	// refuse sends the response, if there is one, that nothing was done because of err.
	refuse(err error, r *Replicator, respond func(any))
}

// outlives reports whether a request may wait for the next incarnation. An update may, since it
// changes data. A subscription may not, since it belongs to an actor of the ending incarnation.
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
	end := a.traced(m.Span, m)
	answer := func(v T, err error) {
		end(err)
		adapted(a.l.r, m.response(v, err), m.Adapt, respond)
	}
	at := m.At.orLocal()
	if err := cmp.Or(m.Key.valid(at), a.admit(at, m.Key.id)); err != nil {
		answer(m.Key.empty(), err)
		return
	}
	if at == Local && m.Key.last != nil && !a.stopped {
		// Earlier messages show in the present state, unless a step has left them open. Values of
		// user-defined types take the path below: their codecs may exit this goroutine, and pending
		// requests must be answered then.
		if d := a.of(m.Key.id); d.core.Hidden() {
			d.settle()
		}
		o := a.l.front.entry(m.Key.id)
		p := a.l.published.Load()
		v, renewAt, err := m.Key.read(p, p.of(m.Key.id), o)
		a.l.r.used(m.Key.id, renewAt)
		answer(v, err)
		return
	}
	a.expect(m.operation())
	a.start(a.of(m.Key.id), m.Timeout, m.Key.id, false,
		func(id uint64, deadline time.Time) core.Event {
			return core.Read{ID: id, Level: at.level(), Deadline: deadline}
		}, func(d core.Done, err error) {
			p := a.l.published.Load()
			now := p.get(m.Key.id)
			if d.State != nil {
				h, _ := d.State.Keys.Get(m.Key.id)
				now = p.ttls.view(m.Key.id, h, d.State.Seen)
			}
			a.l.r.used(m.Key.id, p.ttls.renewAt(p.get(m.Key.id)))
			v, unread := m.Key.empty(), errExit // in case a codec does not return
			defer func() { answer(v, cmp.Or(err, unread)) }()
			if unread = m.Key.of.check(p); unread != nil {
				return
			}
			defer a.l.r.beginUserCall(&m.Key.id).done()
			v, unread = m.Key.load(now.store, now.seen)
		})
}

func (m *Get[T]) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, m.response(m.Key.empty(), err), m.Adapt, respond)
}

func (m *Update[T]) refuse(err error, r *Replicator, respond func(any)) {
	adapted(r, m.response(m.Key.empty(), err), m.Adapt, respond)
}

func (m *Update[T]) run(a *replica, respond func(any)) {
	res, end := m.response(m.Key.empty(), nil), a.traced(m.Span, m)
	answer := func(_ core.Done, err error) {
		end(err)
		if _, ok := err.(*limitError); ok { //nolint:errorlint // never wrapped
			res.value = m.Key.empty() // nothing was done
		}
		res.err = err
		adapted(a.l.r, res, m.Adapt, respond)
	}
	if err := cmp.Or(m.Key.valid(m.At), given(m.Modify != nil), a.l.validTTL(m.Key.id, m.TTL),
		a.admit(m.At, m.Key.id)); err != nil {
		answer(core.Done{}, err)
		return
	}
	waits := m.Adapt != nil || a.asker.waits() // others share events, and are not read before
	if m.At == Local && waits && !a.l.r.durableKeys.durable(m.Key.id) {
		err := errExited // in case Modify does not return
		defer func() {
			if err != errStep { //nolint:errorlint // never wrapped
				answer(core.Done{}, err)
			}
		}()
		if res.value, err = m.Key.here(context.Background(),
			a.l, localUpdate[T]{m.Modify, m.TTL, true}); err != errStep { //nolint:errorlint // as above
			return
		}
	}
	a.expect(m.operation())
	a.update(a.of(m.Key.id), m.At, m.Timeout, m.Key.id, m.Adapt != nil,
		func(t *history.Txn) (err error) {
			defer a.l.r.beginUserCall(&m.Key.id).done()
			res.value, err = m.Key.change(t, a.l, m.Modify, m.TTL)
			return err
		}, answer)
}

// valid returns an error if the key or the level of a message is not valid.
func (k Key[T]) valid(at Consistency) error {
	if err := k.usable(); err != nil {
		return err
	}
	return at.validate()
}
