package singleton

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/ask"
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
// and stops; if no other member can host, what it holds goes to the dead letters.
//
// node.Shutdown calls it. Later calls wait for the first and return the same. The error is ErrUnknown
// with the cause of ctx if that ended first: then the instance is stopped and the lease released
// without waiting, and messages may be lost.
func (s *Singleton) Close(ctx context.Context) error {
	s.started.Do(func() {}) // never to be spawned, if it has not been
	if s.closing.CompareAndSwap(false, true) {
		s.unhook()
		s.err = s.close(ctx)
		close(s.closed)
	}
	select {
	case <-s.closed:
		return s.err
	default:
	}
	select {
	case <-s.closed:
		return s.err
	case <-ctx.Done():
		return fmt.Errorf("singleton %q: %w: %w", s.cfg.Name, ErrUnknown, context.Cause(ctx))
	}
}

func (s *Singleton) close(ctx context.Context) error {
	proxy := s.PID()
	if proxy == nil {
		return nil
	}
	var errs []error
	step := func(pid *actor.PID, m any) {
		if _, err := ask.Request(ctx, s.system, pid, m); err != nil && !errors.Is(err, ask.ErrDeadLetter) {
			errs = append(errs, err)
		}
	}
	if s.manager != nil {
		step(s.manager, &handOver{})
	}
	step(proxy, &drain{})
	s.system.Root.Stop(proxy)
	if s.manager != nil {
		s.system.Root.Stop(s.manager)
	}
	if err := s.wait(ctx); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return fmt.Errorf("singleton %q: closing: %w: %w", s.cfg.Name, ErrUnknown, errs[0])
	}
	return nil
}

// wait waits until the actors have stopped, and the instance with them.
func (s *Singleton) wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		s.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
