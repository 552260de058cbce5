package coordination

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination/stash"
	"github.com/concord-go/concord/internal/contain"
)

// Props returns an actor that acquires and releases the lease on behalf of other actors. It accepts
// *Acquire and *Release, answers with *AcquireResult and *ReleaseResult, and sends *LeaseNearExpiry
// and *LeaseLost to each holder. It never blocks. Several senders may ask; as with Lease, they
// share one grant, and a release by one of them releases it for all. When a sender terminates, its
// requests are withdrawn and its grant is released, unless another sender holds the same grant. A
// grant is also released if its sender, a future for example, is gone before the answer. Stopping
// the actor withdraws and releases everything that was acquired through it. When the member of its
// actor system leaves the cluster, its grants end as with Lease.AcquireTo.
//
// A message of any other type, or an Acquire without a sender, goes to the dead letters, so that
// its sender gets a DeadLetterResponse. The first of each type is logged.
//
// For an actor that must work only under the lease, use Gated.
func Props(l *Lease) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &leaseActor{lease: l.orNone(), claims: map[string]*claim{},
			refused: map[reflect.Type]bool{}}
	})
}

type leaseActor struct {
	lease   *Lease
	claims  map[string]*claim // by sender; a sender has at most one
	refused map[reflect.Type]bool
}

// claim is what one sender has asked for and not released. It ends with its grant, or when all its
// requests have ended without a grant.
type claim struct {
	asker  *actor.PID
	grant  *Grant              // nil before the first grant
	asked  int                 // requests without an answer
	serial int                 // numbers the requests
	open   map[int]*background // requests without an answer, and the request that brought the grant
}

// settled is the result of one request, sent by its goroutine.
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

// refuse sends a message that the actor does not accept to the dead letters.
func (a *leaseActor) refuse(ctx actor.Context) {
	if t := reflect.TypeOf(ctx.Message()); !a.refused[t] {
		a.refused[t] = true
		ctx.Logger().Warn("lease actor received an unexpected message",
			slog.String("lease", a.lease.name),
			slog.String("type", t.String()), slog.Bool("sender", ctx.Sender() != nil))
	}
	contain.DeadLetter(ctx.ActorSystem(), ctx.Self(), stash.Of(ctx).Envelope())
}

func (a *leaseActor) acquire(ctx actor.Context, m *Acquire) {
	asker := ctx.Sender()
	if asker == nil || m == nil {
		a.refuse(ctx) // there is no sender to hold the grant
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
	tell := func(m any) { contain.Send(system, self, m) }
	c.open[serial] = a.lease.inBackground(system, m.attempt(a.lease), tell,
		func(g *Grant, tell func(any)) { tell(&settled{c, serial, AcquireResult{Grant: g}}) },
		func(err error) any { return &settled{c, serial, AcquireResult{Err: err}} })
}

// attempt returns the call that m stands for.
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

// settle answers a request, and forwards the events of a grant that is new to the asker.
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
	contain.Send(ctx.ActorSystem(), c.asker, &m.result)
	if g := m.result.Grant; g != nil && g != c.grant {
		c.grant = g
		system, asker := ctx.ActorSystem(), c.asker
		forward(g, func(m any) { contain.Send(system, asker, m) })
	} else {
		c.open[m.serial].leave()
		delete(c.open, m.serial)
	}
	if c.grant == nil && c.asked == 0 {
		a.forget(ctx, c)
	}
}

// forget drops a claim that has ended.
func (a *leaseActor) forget(ctx actor.Context, c *claim) {
	delete(a.claims, c.asker.String())
	if _, is := process(ctx, c.asker).(*actor.ActorProcess); is {
		ctx.Unwatch(c.asker)
	}
}

// process returns the process of a PID of this actor system, or nil.
func process(ctx actor.Context, pid *actor.PID) actor.Process {
	if pid.Address != ctx.Self().Address && pid.Address != nowhere {
		return nil // grants do not travel, so a remote process cannot hold one
	}
	p, _ := ctx.ActorSystem().ProcessRegistry.GetLocal(pid.Id)
	return p
}

// nowhere is the address of PIDs that were made before their actor system had an address.
const nowhere = "nonhost"

// follow watches an asker if it is an actor. A future would take a Watch for its answer.
func follow(ctx actor.Context, asker *actor.PID) {
	if _, is := process(ctx, asker).(*actor.ActorProcess); is {
		contain.Watch(ctx, asker)
	}
}

// gone reports whether the process of asker no longer exists. Proto.Actor removes an actor from its
// registry before it reports the termination to others.
func gone(ctx actor.Context, asker *actor.PID) bool {
	_, there := ctx.ActorSystem().ProcessRegistry.GetLocal(asker.Id)
	return !there
}

// terminated ends the claims of an asker. A Terminated message about a process that still exists is
// forged and is ignored.
func (a *leaseActor) terminated(ctx actor.Context, who *actor.PID) {
	for _, c := range a.claims {
		if who != nil && c.asker.Id == who.Id && gone(ctx, c.asker) {
			a.bury(c)
		}
	}
}

// bury ends the claim of an asker that is gone. A grant that another claim shares stays.
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

// release ends the sender's claim and answers when the store has confirmed the release.
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
	system := ctx.ActorSystem()
	if grant == nil {
		respond(system, asker, &ReleaseResult{})
		return
	}
	release := func() {
		err := grant.Release(context.Background())
		respond(system, asker, &ReleaseResult{Token: grant.Token(), Err: err})
	}
	if !a.lease.s.spawn(release) {
		go release() // closed: Release does not wait
	}
}

func respond(system *actor.ActorSystem, asker *actor.PID, r *ReleaseResult) {
	if asker != nil {
		contain.Send(system, asker, r)
	}
}

// withdraw forgets the claim. It answers pending requests now; they are resolved in the background.
func (a *leaseActor) withdraw(ctx actor.Context, c *claim) {
	a.forget(ctx, c)
	for range c.asked {
		contain.Send(ctx.ActorSystem(), c.asker, &AcquireResult{
			Err: fmt.Errorf("lease %q: %w", a.lease.name, ErrReleased)})
	}
	c.end()
}

// leave withdraws the requests without an answer, and leaves the grant to the claims that share it.
func (c *claim) leave() {
	for _, b := range c.open {
		b.leave()
		b.withdraw()
	}
}

// end withdraws the requests and releases the grant.
func (c *claim) end() {
	for _, b := range c.open {
		b.cancel()
	}
}
