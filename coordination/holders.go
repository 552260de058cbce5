package coordination

import (
	"context"
	"fmt"
	"iter"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/lifecycle"
)

// HolderChanged reports a holder to an actor that was subscribed with HoldersTo.
type HolderChanged struct {
	Lease  string
	Holder Holder
	Err    error // no answer of the store, or no subscription; Holder is then zero
}

// Holders yields the present holder of the lease, and the holder after each change of owner or
// token. It reads the record on each report of the store's watch, and every Config.RetryInterval.
// Holders in between may be skipped, and a renewal is not a change. Like Holder it is meant for
// people and dashboards. If the store does not answer, Holders yields the error once per outage,
// tries again, and yields the holder when the store answers. The sequence ends when ctx ends or the
// session is closed, and after ErrInvalid.
func (l *Lease) Holders(ctx context.Context) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) {
		if err := l.check(); err != nil {
			yield(Holder{}, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		hints := l.hints(ctx)
		again := newAlarm(l.s.clock)
		defer again.off()
		var last *Holder // nil: before the first
		failing := false
		for {
			h, err := l.Holder(ctx)
			if ctx.Err() != nil || l.s.ended() {
				return
			}
			switch {
			case err != nil && !failing:
				if !yield(Holder{}, err) {
					return
				}
			case err == nil && (last == nil || failing || last.Owner != h.Owner ||
				last.Token != h.Token):
				last = &h
				if !yield(h, nil) {
					return
				}
			}
			failing = err != nil
			again.within(l.s.cfg.RetryInterval)
			select {
			case <-hints:
			case <-again.rings:
				again.off()
			case <-ctx.Done():
				return
			case <-l.s.done:
				return
			}
		}
	}
}

// hints returns a channel that signals changes. It never signals if the store is not a Watcher.
func (l *Lease) hints(ctx context.Context) <-chan struct{} {
	told := make(chan struct{}, 1)
	w, able := l.s.store.(leasestore.Watcher)
	if !able {
		return told
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.s.calls, cancel)
	started := l.s.spawn(func() {
		defer stop()
		defer cancel()
		defer func() { _ = recover() }() // of the store; polling continues
		for _, err := range w.Watch(ctx, l.name) {
			if err != nil {
				return
			}
			select {
			case told <- struct{}{}:
			default:
			}
		}
	})
	if !started {
		stop()
		cancel()
	}
	return told
}

// ended reports whether the session is closed.
func (s *Session) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// HoldersTo sends the values of Holders to the actor, as *HolderChanged, until cancel is called,
// the session is closed, or the member of system leaves its cluster. Call cancel in Stopped at the
// latest. It may be called more than once.
func (l *Lease) HoldersTo(system *actor.ActorSystem, pid *actor.PID) (cancel func()) {
	send := sender(system, pid)
	l = l.orNone()
	tell := func(h Holder, err error) { send(&HolderChanged{l.name, h, err}) }
	ctx, end := context.WithCancel(context.Background())
	if err := l.check(); err != nil {
		end()
		go tell(Holder{}, err)
		return end
	}
	leave, err := lifecycle.OnStop(system, lifecycle.Leases,
		fmt.Sprintf("holders of lease %q", l.name),
		func(context.Context) error { end(); return nil })
	if err != nil {
		end()
		go tell(Holder{}, fmt.Errorf("lease %q: %w", l.name, err))
		return end
	}
	cancel = func() { end(); leave() }
	stop := context.AfterFunc(l.s.calls, end)
	started := l.s.spawn(func() {
		defer stop()
		defer cancel()
		for h, err := range l.Holders(ctx) {
			if ctx.Err() == nil {
				tell(h, err)
			}
		}
	})
	if !started {
		cancel()
		go tell(Holder{}, fmt.Errorf("lease %q: %w", l.name, ErrClosed))
	}
	return cancel
}
