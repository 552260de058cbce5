package distributeddata

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/lifecycle"
)

// maxAtDoor is the number of messages that may wait for the actor to run. Further messages are
// rejected.
const maxAtDoor = 1024

// ingress is the process behind Replicator.PID. It is the same in every incarnation, and passes
// messages to the actor of the present one. Messages that arrive before the actor runs wait, in
// order. Between two incarnations only updates without a waiter wait: requests with a sender are
// answered with an error, and subscriptions end with an incarnation.
type ingress struct {
	mu struct {
		sync.RWMutex
		binding *binding // the present or the last one; the next bind replaces it
		to      actor.Process
		waiting []any
		closed  bool // there will be no next incarnation
	}
}

// bind makes messages wait for l.
func (d *ingress) bind(l *binding) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.binding, d.mu.to, d.mu.closed = l, nil, false
}

// open passes the waiting messages to the actor, and later ones as they come.
func (d *ingress) open(l *binding) {
	to, ok := l.system.ProcessRegistry.GetLocal(l.pid.Id)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ok || d.mu.binding != l {
		return
	}
	for _, m := range d.mu.waiting {
		l.front.sent(m)
		to.SendUserMessage(l.pid, m)
	}
	d.mu.to, d.mu.waiting = to, nil
}

// shut disconnects the actor of l: after shut has returned, no further message reaches it.
func (d *ingress) shut(l *binding) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.binding == l {
		d.mu.to = nil
	}
}

// close rejects the waiting messages and all later ones if l is the last incarnation that was
// bound. A nil l stands for whatever incarnation that is.
func (d *ingress) close(l *binding) {
	d.mu.Lock()
	if d.mu.binding == nil || l != nil && l != d.mu.binding {
		d.mu.Unlock()
		return
	}
	waiting := d.mu.waiting
	d.mu.waiting, d.mu.closed = nil, true
	d.mu.Unlock()
	for _, m := range waiting {
		d.SendUserMessage(nil, m)
	}
}

// SendUserMessage implements actor.Process.
func (d *ingress) SendUserMessage(_ *actor.PID, message any) {
	if d.pass(message) {
		return
	}
	l, why := d.keep(message)
	if why != nil {
		l.refuse(message, why)
	}
}

// pass sends a message to the actor if the actor is running.
func (d *ingress) pass(message any) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.mu.to == nil {
		return false
	}
	d.mu.binding.front.sent(message)
	d.mu.to.SendUserMessage(d.mu.binding.pid, message)
	return true
}

// keep queues a message, or returns an error and the incarnation in which the message must be
// rejected.
func (d *ingress) keep(message any) (*binding, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.mu.binding
	_, m, sender := actor.UnwrapEnvelope(message)
	req, ok := asRequest(m)
	switch {
	case d.mu.to != nil: // the ingress was opened meanwhile
		l.front.sent(message)
		d.mu.to.SendUserMessage(l.pid, message)
		return nil, nil
	case d.mu.closed:
		return l, ErrClosed
	case l.state.Load() == over && (sender != nil || !ok || !outlives(req)):
		return l, errNotTaken
	case len(d.mu.waiting) >= maxAtDoor:
		return l, fmt.Errorf("%w: %d messages wait already for the replica to run", ErrClosed,
			maxAtDoor)
	}
	d.mu.waiting = append(d.mu.waiting, message)
	return nil, nil
}

// SendSystemMessage implements actor.Process.
func (d *ingress) SendSystemMessage(pid *actor.PID, message any) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.mu.to == nil {
		d.mu.binding.system.DeadLetter.SendSystemMessage(pid, message)
		return
	}
	d.mu.to.SendSystemMessage(d.mu.binding.pid, message)
}

// Stop implements actor.Process. A stop from outside ends the incarnation without a handover to
// other members.
func (d *ingress) Stop(*actor.PID) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.mu.to != nil {
		d.mu.to.Stop(d.mu.binding.pid)
	}
}

// refuse answers a message that cannot be carried out. A message without a sender, or one that is
// not a request, goes to the dead letters. That subscribers which stop after the replicator still
// send it something is no fault.
func (l *binding) refuse(message any, why error) {
	_, m, sender := actor.UnwrapEnvelope(message)
	if req, ok := asRequest(m); ok && sender != nil && answered(req) {
		req.refuse(why, l.r, func(res any) {
			if res != nil {
				contain.Send(l.system, sender, res)
			}
		})
		return
	}
	level := slog.LevelWarn
	if lifecycle.Of(l.system).Stopping() {
		level = slog.LevelDebug
	}
	l.system.Logger().Log(context.Background(), level, "message refused",
		slog.String("replicator", l.cfg.Name), slog.String("type", fmt.Sprintf("%T", m)),
		slog.Any("error", why))
	contain.DeadLetter(l.system, l.r.pid, message)
}

// answered reports whether a request has a response.
func answered(r request) bool {
	_, ok := r.(interface{ unanswered() })
	return !ok
}
