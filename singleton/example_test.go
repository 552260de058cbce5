package singleton_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/singleton"
)

// tickets numbers what it is asked for. The token tells tenures apart.
type tickets struct {
	tenure coordination.Tenure
	last   int
}

func (t *tickets) Receive(ctx actor.Context) {
	if name, ok := ctx.Message().(*wrapperspb.StringValue); ok && t.tenure.Check() == nil {
		t.last++
		ctx.Respond(wrapperspb.String(fmt.Sprintf("%s has ticket %d", name.Value, t.last)))
	}
}

func Example() {
	store := memory.New() // one that all members reach
	session, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		panic(err)
	}
	defer session.Close(context.Background())

	// The member: a virtual one here. See package node for a real one.
	var counter *singleton.Singleton
	cluster := simnet.NewCluster(simnet.Config{Members: 1, Setup: func(m *simnet.Member) {
		counter, err = singleton.New(m.System, session, singleton.Config{Name: "tickets"},
			func(t coordination.Tenure) actor.Actor { return &tickets{tenure: t} })
		if err != nil {
			panic(err)
		}
	}})
	defer cluster.Close()
	defer counter.Close(context.Background())
	for counter.PID() == nil { // node.Start waits for that
		time.Sleep(time.Millisecond)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, name := range []string{"Ann", "Bob"} {
		reply, err := counter.Ask(ctx, wrapperspb.String(name))
		if err != nil {
			panic(err)
		}
		fmt.Println(reply.(*wrapperspb.StringValue).Value)
	}
	// Output:
	// Ann has ticket 1
	// Bob has ticket 2
}
