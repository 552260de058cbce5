package coordination_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

// Work under a lease, with the token in each effect.
func ExampleLease_Do() {
	session, err := coordination.Open(memory.New(), coordination.Config{Owner: "node-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(context.Background())

	bill := func(ctx context.Context, customer string) {
		t, _ := coordination.FromContext(ctx)
		fmt.Println("billed", customer, "under token", t.Token())
	}
	err = session.Lease("billing").Do(context.Background(),
		func(ctx context.Context, g *coordination.Grant) error {
			for _, customer := range []string{"ann", "bob"} {
				if err := g.Check(); err != nil {
					return err
				}
				bill(ctx, customer)
			}
			return nil
		})
	fmt.Println(err)
	// Output:
	// billed ann under token 1
	// billed bob under token 1
	// <nil>
}

// The three outcomes of an attempt.
func ExampleLease_TryAcquire() {
	store := memory.New()
	a, _ := coordination.Open(store, coordination.Config{Owner: "node-1"})
	b, _ := coordination.Open(store, coordination.Config{Owner: "node-2"})
	defer a.Close(context.Background())
	defer b.Close(context.Background())

	grant, err := a.Lease("leader").TryAcquire(context.Background())
	fmt.Println(grant, err)

	_, err = b.Lease("leader").TryAcquire(context.Background())
	switch held, ok := errors.AsType[*coordination.HeldError](err); {
	case err == nil: // held
	case ok: // certainly held by another session
		fmt.Println("held by", held.Holder.Owner)
	default: // unknown: act as not holding
	}

	_ = grant.Release(context.Background())
	grant, err = b.Lease("leader").TryAcquire(context.Background())
	fmt.Println(grant, err)
	_ = grant.Release(context.Background())
	// Output:
	// lease "leader", token 1 <nil>
	// held by node-1
	// lease "leader", token 2 <nil>
}

// A dashboard shows the holder of a lease. An operator who knows that the holder is dead releases
// the lease by force.
func ExampleLease_ForceRelease() {
	store, ctx := memory.New(), context.Background()
	a, _ := coordination.Open(store, coordination.Config{Owner: "node-1"})
	b, _ := coordination.Open(store, coordination.Config{Owner: "operator"})
	defer a.Close(ctx)
	defer b.Close(ctx)
	_, _ = a.Lease("billing").TryAcquire(ctx)

	lease := b.Lease("billing")
	holder, err := lease.Holder(ctx)
	fmt.Println(holder.Owner, holder.Token, err)
	fmt.Println(lease.ForceRelease(ctx, holder.Token+1)) // only the tenure that was read
	fmt.Println(lease.ForceRelease(ctx, holder.Token))
	grant, err := lease.TryAcquire(ctx)
	fmt.Println(grant, err)
	_ = grant.Release(ctx)
	// Output:
	// node-1 1 <nil>
	// lease "billing": coordination: lease held by another owner: node-1, token 1
	// <nil>
	// lease "billing", token 2 <nil>
}

// Code beside the guarded work is notified of the end of the lease.
func ExampleGrant_OnLost() {
	session, _ := coordination.Open(memory.New(), coordination.Config{})
	grant, _ := session.Lease("billing").TryAcquire(context.Background())
	stopped := make(chan *coordination.LostError)
	grant.OnLost(func(lost *coordination.LostError) { stopped <- lost })

	closed := make(chan error)
	go func() { closed <- session.Close(context.Background()) }()
	lost := <-stopped
	fmt.Println(lost.Why, errors.Is(grant.Check(), coordination.ErrLost))
	fmt.Println(grant.Release(context.Background())) // the work has stopped
	fmt.Println(<-closed)
	// Output:
	// session closed true
	// <nil>
	// <nil>
}

// greeter works only under the lease; it exists only while the lease is held.
type greeter struct{ tenure coordination.Tenure }

func (g *greeter) Receive(ctx actor.Context) {
	if name, ok := ctx.Message().(string); ok && g.tenure.Check() == nil {
		fmt.Println("hello", name, "under token", g.tenure.Token())
		ctx.Stop(ctx.Self())
	}
}

// An actor that works only under the lease.
func ExampleGated() {
	session, _ := coordination.Open(memory.New(), coordination.Config{})
	system := actor.NewActorSystem()
	done := make(chan struct{})

	props := coordination.Gated(session.Lease("greeter"), 1000,
		func(t coordination.Tenure) actor.Actor {
			return &greeter{t}
		})
	pid := system.Root.Spawn(props)
	system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(pid)
			ctx.Send(pid, "Ann") // kept until the lease is held
		case *actor.Terminated:
			close(done)
		}
	}))
	<-done
	_ = session.Close(context.Background())
	// Output: hello Ann under token 1
}

// byHand is a lease-gated actor with explicit states.
type byHand struct {
	lease    *coordination.Lease
	behavior actor.Behavior
	cancel   func()
	grant    *coordination.Grant
	kept     []string
	done     chan struct{}
}

func (b *byHand) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*actor.Stopped); ok { // in either state
		b.cancel()
		close(b.done)
		return
	}
	b.behavior.Receive(ctx)
}

func (b *byHand) AcquiringLease(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		b.cancel = b.lease.AcquireTo(ctx.ActorSystem(), ctx.Self())
	case *coordination.Acquired:
		b.grant = m.Grant
		b.behavior.Become(b.Active)
		for _, name := range b.kept {
			b.work(ctx, name)
		}
		b.kept = nil
	case string:
		if len(b.kept) < 1000 {
			b.kept = append(b.kept, m)
		}
	}
}

func (b *byHand) Active(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *coordination.LeaseLost:
		if m.Grant == b.grant { // not an old tenure
			b.cancel() // the work has stopped: let others in
			b.behavior.Become(b.AcquiringLease)
			b.cancel = b.lease.AcquireTo(ctx.ActorSystem(), ctx.Self())
		}
	case string:
		b.work(ctx, m)
	}
}

func (b *byHand) work(ctx actor.Context, name string) {
	if b.grant.Check() == nil {
		fmt.Println("hello", name, "under token", b.grant.Token())
		ctx.Stop(ctx.Self())
	}
}

// The same without Gated: acquire at the start, keep messages back, stop on loss, release at the
// end.
func ExampleLease_AcquireTo() {
	session, _ := coordination.Open(memory.New(), coordination.Config{})
	system := actor.NewActorSystem()
	done := make(chan struct{})
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		b := &byHand{lease: session.Lease("greeter"), behavior: actor.NewBehavior(), done: done}
		b.behavior.Become(b.AcquiringLease)
		return b
	}))
	system.Root.Send(pid, "Bob")
	<-done
	_ = session.Close(context.Background())
	// Output: hello Bob under token 1
}
