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

// Close ends this member's part. If it hosts, it hands over: the others are told, the instance is
// stopped, and when it has terminated the lease is released, and when that is confirmed the next host
// is told, and gets what has arrived meanwhile. Then the proxy waits until what it holds has a new host
// and stops; if no other member can host, what it holds goes to the dead letters. A member that was
// removed from its cluster does not wait for others: its instance ends within Drain, or a second.
//
// node.Shutdown calls it, and node.Run at the end of each life; then Ask waits for the next life. After
// this call Ask does not. Later calls wait for the first and return the same. The error is ErrUnknown
// with the cause of ctx if that ended first: then the instance is stopped and the lease released
// without waiting, and messages may be lost.
func (s *Singleton) Close(ctx context.Context) error {
	s.present.Last()
	if l := s.present.Load(); l != nil {
		return l.close(ctx)
	}
	return s.present.Err()
}

// close ends the life. Later calls wait for the first.
func (l *life) close(ctx context.Context) error {
	l.started.Do(func() {}) // never to be up, if it has not been
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

func (l *life) handOver(ctx context.Context) error {
	var errs []error
	step := func(pid *actor.PID, m any) {
		if _, err := ask.Request(ctx, l.system, pid, m); err != nil && !errors.Is(err, ask.ErrDeadLetter) {
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
	if err := lifecycle.Wait(ctx, &l.actors); err != nil { // and for the instance
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("singleton %q: closing: %w: %w", l.cfg.Name, ErrUnknown, errs[0])
	}
	return nil
}
