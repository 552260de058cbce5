package distributeddata

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// changed notes keys that hold something else. Subscribers are told after Config.NotifyInterval.
func (a *replica) changed(keys []string) {
	if !a.subs.changed(keys, a.l.published.Load()) {
		return
	}
	if a.l.cfg.NotifyInterval < 0 {
		a.tellAll()
	} else if !a.notify.Armed() {
		a.notify.Set(a.l.cfg.NotifyInterval, nil)
	}
}

// flush tells subscribers at once what they have not been told.
func (a *replica) flush() {
	for _, d := range a.domains {
		d.step(core.Wake{}) // publishes what nobody waits for
	}
	a.tellAll()
}

// subscribe takes in a subscription, and tells the subscriber what is there.
func (a *replica) subscribe(pid *actor.PID, text string, exact bool, notice noticeFunc) {
	w, isNew := a.subs.watcher(pid)
	if isNew {
		process, _ := a.l.system.ProcessRegistry.GetLocal(pid.Id)
		_, w.paced = process.(*actor.ActorProcess)
		a.ctx.Watch(pid)
	}
	sub := a.subs.add(w, text, exact, notice)
	if !exact {
		w.begin(text)
		a.subs.late(w)
		a.tellAll()
		return
	}
	w.toldOf(text, a.l.published.Load().get(text))
	a.tell(sub, text, told{})
}

func (a *replica) unsubscribe(pid *actor.PID, text string, exact bool) {
	if a.subs.remove(pid, text, exact) {
		a.ctx.Unwatch(pid)
	}
}

// tellSome is of how many keys subscribers are told before the next message is handled, and tellOn is the message
// that goes on with the others: a change of many keys holds nobody up.
const tellSome = 256

type tellOn struct{}

// tellAll tells every subscriber what is new for it.
func (a *replica) tellAll() {
	now := a.l.published.Load()
	for left := tellSome; left > 0; {
		w := a.subs.next()
		if w == nil {
			return
		}
		left -= max(w.tell(left, now, a.tell), 1)
		if !w.behind() || w.full() {
			a.subs.settled(w)
		}
	}
	if a.subs.behind.Len() > 0 && !a.telling {
		a.telling = true
		a.ctx.Send(a.ctx.Self(), tellOn{})
	}
}

// tell tells a subscriber what is new for it of a key. If that fails the other subscribers are told all the same.
func (a *replica) tell(s *subscription, key string, old told) {
	defer a.guard("telling a subscriber")
	now := a.l.published.Load().get(key)
	if old.same(now) {
		return
	}
	s.notice(key, old, now, func(msg any) {
		if msg != nil {
			a.send(s.w.pid, msg)
			a.pace(s.w)
		}
	})
}

// pace asks a subscriber now and then whether it has taken what it was sent. While it has not, what changes is
// only noted, so that a slow subscriber has a bounded number of notices waiting, and then gets the newest values.
func (a *replica) pace(w *watcher) {
	if w.sent++; !w.paced || w.sent < window {
		return
	}
	w.sent = 0
	w.asked++
	a.ctx.Request(w.pid, &pace{})
}

// pace is a question that the context of every actor answers by itself, after what was sent before it.
type pace struct{}

// taken is the answer of the subscriber of that id.
type taken struct{ id string }

// GetAutoResponse implements actor.AutoRespond.
func (*pace) GetAutoResponse(ctx actor.Context) any { return &taken{ctx.Self().Id} }

// AutoReceiveMessage implements actor.AutoReceiveMessage, so that an actor can tell it from messages for it.
func (*pace) AutoReceiveMessage() {}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*pace) IgnoreDeadLetterLogging() {}

// onTaken goes on with a subscriber.
func (a *replica) onTaken(m *taken) {
	w := a.subs.watchers[m.id]
	if w == nil || w.asked == 0 {
		return
	}
	slow := w.full()
	w.asked--
	if slow && w.behind() {
		a.subs.late(w)
		a.tellAll()
	}
}
