package stash_test

import (
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination/stash"
)

// account loads its balance before it answers. It keeps at most two messages meanwhile.
type account struct {
	kept   *stash.Stash
	loaded bool
	cents  int
}

type (
	deposit struct{ cents int }
	balance struct{ cents int } // from the database
	busy    struct{}
)

func (a *account) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *balance:
		a.cents, a.loaded = m.cents, true
		a.kept.Replay(ctx)
	case *actor.Restarting, *actor.Stopped:
		a.kept.Discard(ctx)
	case *deposit:
		switch {
		case a.loaded:
			a.cents += m.cents
			ctx.Respond(a.cents)
		case !a.kept.Push(ctx):
			ctx.Respond(&busy{})
		}
	}
}

func Example() {
	system := actor.NewActorSystem()
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return &account{kept: stash.New(2)}
	}))

	var answers []func() (any, error)
	for _, cents := range []int{1, 2, 3} {
		answers = append(answers, system.Root.RequestFuture(pid, &deposit{cents},
			time.Minute).Result)
	}
	system.Root.Send(pid, &balance{100}) // the state has been loaded
	for _, result := range answers {
		answer, err := result()
		fmt.Printf("%v %v\n", answer, err)
	}
	// Output:
	// 101 <nil>
	// 103 <nil>
	// &{} <nil>
}
