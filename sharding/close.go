package sharding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Close ends this member's part in the type. Its shards are given to other members, one by one as
// those become ready: entities handle the messages they have, and no message is lost. If no other
// member can host, the entities are stopped anyway. Messages of this member are accepted until
// then, and other members confirm them before Close returns; messages that still wait become dead
// letters. If the coordinator is on this member, it moves last.
//
// node.Shutdown calls Close, and node.Run calls it at the end of each incarnation; after that, Ask
// waits for the next incarnation. After a call of Close by the application, Ask does not wait.
// Later calls wait for the first and return the same result. If ctx ends first, the error matches
// ErrUnknown and the cause of ctx: the entities are then stopped after the message that each is
// handling, and messages are lost.
func (r *region) Close(ctx context.Context) error {
	if err := r.made(); err != nil {
		return err
	}
	r.present.Last()
	if l := r.present.Load(); l != nil {
		return errors.Join(l.close(ctx), l.host.Close(ctx))
	}
	return r.present.Err()
}

// close ends the incarnation. Later calls wait for the first. The coordinator is stopped in its own
// phase of the shutdown.
func (l *binding) close(ctx context.Context) error {
	l.started.Do(func() {}) // if the member is not up yet, prevents up
	if l.closing.CompareAndSwap(false, true) {
		l.unhook()
		l.err = errors.Join(l.handOff(ctx), l.unobserve())
		l.ended(l.err)
		close(l.closed)
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
		return fmt.Errorf("sharding %q: %w: %w", l.cfg.Type, ErrUnknown, context.Cause(ctx))
	}
}

// hurryFor bounds the wait for entities that are stopped after the message that each is handling,
// and for the release of their leases.
const hurryFor = time.Second

// handOff gives the shards up, and then stops the control actor. Messages of this process are
// accepted while shards move; after that, each has left this member, or is reported.
func (l *binding) handOff(ctx context.Context) error {
	_, err := ask.Request(ctx, l.system, l.control, &leave{})
	l.shut()
	if err == nil {
		_, err = ask.Request(ctx, l.system, l.control, &flush{})
	}
	if err != nil {
		in, cancel := context.WithTimeout(context.Background(), hurryFor)
		defer cancel()
		_, _ = ask.Request(in, l.system, l.control, &hurry{})
	}
	l.removeProcesses()
	l.system.Root.Poison(l.control) // behind the messages that it has
	if e := lifecycle.Wait(ctx, &l.actors); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("sharding %q: closing: %w: %w", l.cfg.Type, ErrUnknown, err)
	}
	return nil
}
