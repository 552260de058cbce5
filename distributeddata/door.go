package distributeddata

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// maxAtDoor is how many messages wait for the actor to run. One more is refused.
const maxAtDoor = 1024

// door is the process behind Replicator.PID. It is the same in every life, and hands messages to the actor of the
// present one. What comes before the actor runs waits, in order. Between two lives only updates that nobody waits
// for do: whoever waits is told, and subscriptions end with a life.
type door struct {
	mu struct {
		sync.RWMutex
		life    *life // the present one, or the last; the next bind replaces it
		to      actor.Process
		waiting []any
		closed  bool // there is no next life
	}
}

// bind lets messages wait for l.
func (d *door) bind(l *life) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.life, d.mu.to, d.mu.closed = l, nil, false
}

// open hands over what has waited, and what comes from now on.
func (d *door) open(l *life) {
	to, ok := l.system.ProcessRegistry.GetLocal(l.pid.Id)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ok || d.mu.life != l {
		return
	}
	for _, m := range d.mu.waiting {
		to.SendUserMessage(l.pid, m)
	}
	d.mu.to, d.mu.waiting = to, nil
}

// shut ends the way to the actor of l: when it returns, nothing more comes.
func (d *door) shut(l *life) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.life == l {
		d.mu.to = nil
	}
}

// close refuses what comes from now on, and what has waited, if l is the last life bound; nil: whichever that is.
func (d *door) close(l *life) {
	d.mu.Lock()
	if d.mu.life == nil || l != nil && l != d.mu.life {
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
func (d *door) SendUserMessage(_ *actor.PID, message any) {
	if d.pass(message) {
		return
	}
	l, why := d.keep(message)
	if why != nil {
		l.refuse(message, why)
	}
}

// pass hands a message to the actor if that runs.
func (d *door) pass(message any) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.mu.to == nil {
		return false
	}
	d.mu.to.SendUserMessage(d.mu.life.pid, message)
	return true
}

// keep lets a message wait, or says why it may not, and in which life it is to be refused.
func (d *door) keep(message any) (*life, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.mu.life
	_, m, sender := actor.UnwrapEnvelope(message)
	req, ok := asRequest(m)
	switch {
	case d.mu.to != nil: // opened meanwhile
		d.mu.to.SendUserMessage(l.pid, message)
		return nil, nil
	case d.mu.closed:
		return l, ErrClosed
	case l.state.Load() == over && (sender != nil || !ok || !outlives(req)):
		return l, errNotTaken
	case len(d.mu.waiting) >= maxAtDoor:
		return l, fmt.Errorf("%w: %d messages wait already for the replica to run", ErrClosed, maxAtDoor)
	}
	d.mu.waiting = append(d.mu.waiting, message)
	return nil, nil
}

// SendSystemMessage implements actor.Process.
func (d *door) SendSystemMessage(pid *actor.PID, message any) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.mu.to == nil {
		d.mu.life.system.DeadLetter.SendSystemMessage(pid, message)
		return
	}
	d.mu.to.SendSystemMessage(d.mu.life.pid, message)
}

// Stop implements actor.Process. A stop from outside ends the life without waiting for others.
func (d *door) Stop(*actor.PID) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.mu.to != nil {
		d.mu.to.Stop(d.mu.life.pid)
	}
}

// refuse answers a message that cannot be carried out. What nobody waits for, or is no request, goes to the dead
// letters.
func (l *life) refuse(message any, why error) {
	_, m, sender := actor.UnwrapEnvelope(message)
	if req, ok := asRequest(m); ok && sender != nil && answered(req) {
		req.refuse(why, l.r, func(res any) {
			if res != nil {
				l.system.Root.Send(sender, res)
			}
		})
		return
	}
	l.system.Logger().Warn("message refused", slog.String("replicator", l.cfg.Name),
		slog.String("type", fmt.Sprintf("%T", m)), slog.Any("error", why))
	l.system.DeadLetter.SendUserMessage(l.r.pid, message)
}

// answered reports whether a request has a response.
func answered(r request) bool {
	_, ok := r.(interface{ unanswered() })
	return !ok
}
