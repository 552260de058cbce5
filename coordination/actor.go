package coordination

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/stash"
)

// Props returns an actor that speaks for the lease: it takes *Acquire and *Release, answers with
// *AcquireResult and *ReleaseResult, and tells each holder of *LeaseNearExpiry and *LeaseLost. It
// never blocks. Several senders may ask; as with Lease, they share one grant and one of them releases
// it for all. When a sender terminates, what it has asked for is withdrawn, and what it holds is released,
// unless another sender holds it too; so is a grant whose sender, a future for example, has gone before the
// answer. Stopping the actor withdraws and releases everything that was acquired through it. When the member
// of its actor system leaves, what it holds ends as with Lease.AcquireTo.
//
// A message of another type, and an Acquire that has no sender to answer to, goes to the dead letters,
// so that its sender gets a DeadLetterResponse; the first of each type is logged.
//
// For an actor that is to work only under the lease, use Gated.
func Props(l *Lease) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &leaseActor{lease: l, claims: map[string]*claim{}, refused: map[reflect.Type]bool{}}
	})
}

type leaseActor struct {
	lease   *Lease
	claims  map[string]*claim // by sender; a sender has at most one
	refused map[reflect.Type]bool
}

// claim is what one sender has asked for and not released. It ends when all its requests have ended
// without a grant, or with the grant.
type claim struct {
	asker  *actor.PID
	grant  *Grant              // nil before
	asked  int                 // requests without an answer
	serial int                 // numbers the requests
	open   map[int]*background // those without an answer, and the one that brought the grant
}

// settled is the end of one request, told by its goroutine.
type settled struct {
	claim  *claim
	serial int
	result AcquireResult
}

func (a *leaseActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Acquire:
		a.acquire(ctx, m)
	case Acquire:
		a.acquire(ctx, &m)
	case *settled:
		a.settle(ctx, m)
	case *Release:
		a.release(ctx, m)
	case Release:
		a.release(ctx, &m)
	case *actor.Terminated:
		a.terminated(ctx, m.Who)
	case *actor.Stopped, *actor.Restarting:
		for _, c := range a.claims {
			a.forget(ctx, c)
			c.end()
		}
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		a.refuse(ctx)
	}
}

// refuse gives a message that means nothing here to the dead letters.
func (a *leaseActor) refuse(ctx actor.Context) {
	if t := reflect.TypeOf(ctx.Message()); !a.refused[t] {
		a.refused[t] = true
		ctx.Logger().Warn("lease actor does not know what to do with a message", slog.String("lease", a.lease.name),
			slog.String("type", t.String()), slog.Bool("sender", ctx.Sender() != nil))
	}
	ctx.ActorSystem().DeadLetter.SendUserMessage(ctx.Self(), stash.Of(ctx).Envelope())
}

func (a *leaseActor) acquire(ctx actor.Context, m *Acquire) {
	asker := ctx.Sender()
	if asker == nil || m == nil {
		a.refuse(ctx) // nobody could hold what is acquired
		return
	}
	c, ok := a.claims[asker.String()]
	if !ok {
		c = &claim{asker: asker, open: map[int]*background{}}
		a.claims[asker.String()] = c
		follow(ctx, asker)
	}
	c.asked++
	c.serial++
	serial, system, self := c.serial, ctx.ActorSystem(), ctx.Self()
	tell := func(m any) { system.Root.Send(self, m) }
	c.open[serial] = a.lease.inBackground(system, m.attempt(a.lease), tell,
		func(g *Grant, tell func(any)) { tell(&settled{c, serial, AcquireResult{Grant: g}}) },
		func(err error) any { return &settled{c, serial, AcquireResult{Err: err}} })
}

// attempt is the call that m stands for.
func (m *Acquire) attempt(l *Lease) func(context.Context) (*Grant, error) {
	switch {
	case m.Wait == 0:
		return l.TryAcquire
	case m.Wait < 0:
		return l.Acquire
	}
	return func(ctx context.Context) (*Grant, error) {
		ctx, cancel := context.WithTimeout(ctx, m.Wait)
		defer cancel()
		return l.Acquire(ctx)
	}
}

// settle answers, and follows a grant that is new to the asker.
func (a *leaseActor) settle(ctx actor.Context, m *settled) {
	c := m.claim
	c.asked--
	if a.claims[c.asker.String()] != c {
		return // released meanwhile, and answered then
	}
	if gone(ctx, c.asker) {
		a.bury(c)
		return
	}
	ctx.Send(c.asker, &m.result)
	if g := m.result.Grant; g != nil && g != c.grant {
		c.grant = g
		system, asker := ctx.ActorSystem(), c.asker
		forward(g, func(m any) { system.Root.Send(asker, m) })
	} else {
		c.open[m.serial].leave()
		delete(c.open, m.serial)
	}
	if c.grant == nil && c.asked == 0 {
		a.forget(ctx, c)
	}
}

// forget drops a claim that has come to nothing, or to an end.
func (a *leaseActor) forget(ctx actor.Context, c *claim) {
	delete(a.claims, c.asker.String())
	if _, is := process(ctx, c.asker).(*actor.ActorProcess); is {
		ctx.Unwatch(c.asker)
	}
}

// process is that of a PID of this system, or nil.
func process(ctx actor.Context, pid *actor.PID) actor.Process {
	if pid.Address != ctx.Self().Address && pid.Address != nowhere {
		return nil // grants do not travel, so it cannot hold one
	}
	p, _ := ctx.ActorSystem().ProcessRegistry.GetLocal(pid.Id)
	return p
}

// nowhere is the address of PIDs from before their system had one.
const nowhere = "nonhost"

// follow watches an asker, unless it is no actor: a future takes a Watch for its answer.
func follow(ctx actor.Context, asker *actor.PID) {
	if _, is := process(ctx, asker).(*actor.ActorProcess); is {
		ctx.Watch(asker)
	}
}

// gone tells that nobody takes an answer any more. Proto.Actor takes an actor out of its registry before it
// tells others that it has ended.
func gone(ctx actor.Context, asker *actor.PID) bool {
	_, there := ctx.ActorSystem().ProcessRegistry.GetLocal(asker.Id)
	return !there
}

// terminated ends the claims of an asker. A message that says so of an actor that is there is forged.
func (a *leaseActor) terminated(ctx actor.Context, who *actor.PID) {
	for _, c := range a.claims {
		if who != nil && c.asker.Id == who.Id && gone(ctx, c.asker) {
			a.bury(c)
		}
	}
}

// bury ends the claim of an asker that is gone. What another one holds too stays.
func (a *leaseActor) bury(c *claim) {
	delete(a.claims, c.asker.String())
	for _, o := range a.claims {
		if c.grant != nil && o.grant == c.grant {
			c.leave()
			return
		}
	}
	c.end()
}

// release ends the sender's claim and answers when the store has confirmed.
func (a *leaseActor) release(ctx actor.Context, m *Release) {
	if m == nil {
		a.refuse(ctx)
		return
	}
	asker := ctx.Sender()
	var c *claim
	if asker != nil {
		c = a.claims[asker.String()]
	}
	grant := m.Grant
	if c != nil && (grant == nil || grant == c.grant) {
		a.withdraw(ctx, c)
		grant = c.grant
	}
	if grant == nil {
		ctx.Respond(&ReleaseResult{})
		return
	}
	system := ctx.ActorSystem()
	answer := func(err error) {
		if asker != nil {
			system.Root.Send(asker, &ReleaseResult{Token: grant.Token(), Err: err})
		}
	}
	if !a.lease.s.spawn(func() { answer(grant.Release(context.Background())) }) {
		go func() { answer(grant.Release(context.Background())) }() // closed: it does not wait
	}
}

// withdraw forgets the claim; requests under way are answered now and resolved in the background.
func (a *leaseActor) withdraw(ctx actor.Context, c *claim) {
	a.forget(ctx, c)
	for range c.asked {
		ctx.Send(c.asker, &AcquireResult{Err: fmt.Errorf("lease %q: %w", a.lease.name, ErrReleased)})
	}
	c.end()
}

// leave withdraws the requests without an answer, and leaves the grant to others.
func (c *claim) leave() {
	for _, b := range c.open {
		b.leave()
		b.withdraw()
	}
}

// end withdraws the requests, and releases the grant.
func (c *claim) end() {
	for _, b := range c.open {
		b.cancel()
	}
}
