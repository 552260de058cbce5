package distributeddata

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/contain"
)

// caughtUp records all changes that were not reported, for the subscribers and the loops.
func (a *replica) caughtUp() {
	a.subs.caughtUp(a.l.published.Load())
	a.l.r.loops.rouse()
}

// changed records that keys have changed. Subscribers are notified after Config.NotifyInterval.
func (a *replica) changed(keys []string) {
	a.l.r.loops.changed(keys)
	if !a.subs.changed(keys, a.l.published.Load()) {
		return
	}
	if a.l.cfg.NotifyInterval < 0 {
		a.tellAll()
	} else if !a.notify.Armed() {
		a.notify.Set(a.l.cfg.NotifyInterval, nil)
	}
}

// flush notifies subscribers of all pending changes at once.
func (a *replica) flush() {
	for _, d := range a.domains {
		d.step(core.Wake{}) // publishes updates without a waiter
	}
	a.tellAll()
}

// subscribe adds a subscription, and sends the existing entries to the subscriber.
func (a *replica) subscribe(pid *actor.PID, text string, exact bool, notice noticeFunc) {
	w, isNew := a.subs.watcher(pid)
	if isNew {
		process, _ := a.l.system.ProcessRegistry.GetLocal(pid.Id)
		_, w.paced = process.(*actor.ActorProcess)
		contain.Watch(a.ctx, pid)
	}
	sub := a.subs.add(w, text, exact, notice)
	if !exact {
		w.begin(text)
		a.subs.late(w)
		a.tellAll()
		return
	}
	w.toldOf(text, a.l.published.Load().get(text))
	a.tell(sub, text, entryView{})
}

func (a *replica) unsubscribe(pid *actor.PID, text string, exact bool) {
	if a.subs.remove(pid, text, exact) {
		a.ctx.Unwatch(pid)
	}
}

// tellSome is the number of keys for which subscribers are notified before the next message is
// handled. tellOn is the message that continues with the rest, so a change of many keys does not
// block the actor.
const tellSome = 256

type tellOn struct{}

// tellAll sends the pending changes to the subscribers, up to tellSome of them.
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

// tell sends the change of a key to a subscriber. A failure does not affect the other subscribers.
func (a *replica) tell(s *subscription, key string, old entryView) {
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

// pace asks a subscriber from time to time whether it has taken the notices sent to it. Until it
// answers, further changes are only recorded. A slow subscriber thus has a bounded number of
// notices in its mailbox, and then gets the newest values.
func (a *replica) pace(w *watcher) {
	if w.sent++; !w.paced || w.sent < window {
		return
	}
	w.sent = 0
	w.asked++
	a.ctx.Request(w.pid, &pace{})
}

// pace is a question that the context of every actor answers by itself, after all messages sent
// before it.
type pace struct{}

// taken is the answer of the subscriber with that id.
type taken struct{ id string }

// GetAutoResponse implements actor.AutoRespond.
func (*pace) GetAutoResponse(ctx actor.Context) any { return &taken{ctx.Self().Id} }

// AutoReceiveMessage implements actor.AutoReceiveMessage, so that an actor can distinguish pace
// from its own messages.
func (*pace) AutoReceiveMessage() {}

// IgnoreDeadLetterLogging implements actor.IgnoreDeadLetterLogging.
func (*pace) IgnoreDeadLetterLogging() {}

// onTaken resumes sending to a subscriber.
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
