package coordination

import (
	"context"
	"iter"

	"github.com/concord-go/concord/coordination/leasestore"
)

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
