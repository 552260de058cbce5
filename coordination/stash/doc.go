// Package stash keeps messages back until an actor is ready for them.
//
// A singleton, a sharded entity or a worker under a lease often has to load its state before it can
// answer. It must not block in Receive meanwhile, so it keeps the messages that arrive, and handles
// them when the state is there:
//
//	func (c *cart) Receive(ctx actor.Context) {
//		switch m := ctx.Message().(type) {
//		case *actor.Started:
//			c.load(ctx) // in a goroutine, which sends the state to ctx.Self()
//		case *state:
//			c.state = m
//			c.kept.Replay(ctx)
//		case *actor.Restarting, *actor.Stopped:
//			c.kept.Discard(ctx)
//		case *add:
//			switch {
//			case c.state != nil:
//				c.add(ctx, m)
//			case !c.kept.Push(ctx):
//				ctx.Respond(&busy{})
//			}
//		}
//	}
//
// Messages that wait for a lease or for the host of a singleton need no stash of the application:
// coordination.Gated, singletons and shards keep those themselves, with this package.
//
// # Bound, order and stop
//
// A stash holds at most as many messages as New was told. Push rejects the newest message of a full
// stash, and the actor decides what its sender gets.
//
// Messages come out in the order in which they were pushed. Replay handles them in the actor before
// any message of its mailbox, so the order of each sender is kept. Messages that are sent back to
// the actor's own PID instead are handled after those already in its mailbox.
//
// A stash is part of its actor and ends with it: when the actor stops or restarts, call Discard,
// which sends the rest to the dead letters, so that a sender that asked gets an answer now instead
// of a time-out. Use it at Stopped, not at Stopping: an actor that waits for its children to stop
// still gets messages.
//
// # Compared with Proto.Actor's own stash
//
// Proto.Actor's Stash loses the sender, has no bound, and replays in reverse order and only when
// the actor restarts. This one keeps message, sender and header. It keeps no actor context, so its
// entries stay valid.
//
// docs/singleton.md and docs/leases.md describe the actors that wait for a lease.
package stash
