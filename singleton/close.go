package singleton

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Messages of Close to the actors, and their answers.
type (
	handOver   struct{}
	handedOver struct{}
	drain      struct{}
	drained    struct{}
)

// Close ends this member's part. If it hosts, it hands over: it notifies the others, stops the
// instance, releases the lease when the instance has terminated, and when the release is confirmed
// notifies the next host and passes on the messages that have arrived meanwhile. Then the proxy
// waits until there is a host for the messages it keeps, and stops; if no other member can host,
// these messages go to the dead letters. A member that was removed from its cluster does not wait
// for others: its instance stops within Drain, or a second.
//
// node.Shutdown ends this member's part in the same way, and so does node.Run at the end of each
// incarnation; Ask then waits for the next incarnation. After Close, Ask does not wait. Later calls
// of Close wait for the first and return the same result. The error is ErrUnknown with the cause of
// ctx if ctx ended first: then messages may be lost, the instance is stopped after the message that
// it is handling, and the lease is released after that.
func (s *Singleton) Close(ctx context.Context) error {
	if s == nil || s.present == nil {
		return errUnmade
	}
	s.present.Last()
	if l := s.present.Load(); l != nil {
		return l.close(ctx)
	}
	return s.present.Err()
}

// close ends the incarnation. Later calls wait for the first.
func (l *binding) close(ctx context.Context) error {
	l.started.Do(func() {}) // so that up never runs, if it has not run yet
	if l.closing.CompareAndSwap(false, true) {
		l.unhook()
		l.over(l.handOver(ctx))
	}
	select {
	case <-l.closed:
		return l.err
	default:
	}
	select {
	case <-l.closed:
		return l.err
	case <-ctx.Done():
		return fmt.Errorf("singleton %q: %w: %w", l.cfg.Name, ErrUnknown, context.Cause(ctx))
	}
}

func (l *binding) handOver(ctx context.Context) error {
	var errs []error
	step := func(pid *actor.PID, m any) {
		if _, err := ask.Request(ctx, l.system, pid, m); err != nil &&
			!errors.Is(err, ask.ErrDeadLetter) {
			errs = append(errs, err)
		}
	}
	if l.manager != nil {
		step(l.manager, &handOver{})
	}
	step(l.proxy, &drain{})
	l.system.Root.Stop(l.proxy)
	if l.manager != nil {
		l.system.Root.Stop(l.manager)
	}
	if err := lifecycle.Wait(ctx, &l.actors); err != nil { // also for the instance
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("singleton %q: closing: %w: %w", l.cfg.Name, ErrUnknown, errs[0])
	}
	return nil
}
