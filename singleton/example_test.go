package singleton_test

import (
	"context"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/singleton"
)

// tickets hands out numbers. The token distinguishes tenures.
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

// HandOver leaves the number to the next instance, so that the next one need not start again after
// a planned move.
func (t *tickets) HandOver() proto.Message { return wrapperspb.Int64(int64(t.last)) }

// TakeOver continues where the instance of tenure giver stopped.
func (t *tickets) TakeOver(giver coordination.Token, state proto.Message) {
	if last, ok := state.(*wrapperspb.Int64Value); ok {
		t.last = int(last.Value)
		fmt.Printf("tenure %d goes on after ticket %d of tenure %d\n", t.tenure.Token(),
			t.last, giver)
	}
}

// The number continues although the instance moves to another member.
func ExampleWarm() {
	store, singles, sessions := memory.New(), []*singleton.Singleton{}, []*coordination.Session{}
	cluster := simnet.NewCluster(simnet.Config{Members: 2, Setup: func(m *simnet.Member) {
		session, err := coordination.Open(store, coordination.Config{})
		if err != nil {
			panic(err)
		}
		s, err := singleton.New(m.System, session, singleton.Config{Name: "tickets", MinMembers: 2},
			func(t coordination.Tenure) actor.Actor { return &tickets{tenure: t} })
		if err != nil {
			panic(err)
		}
		singles, sessions = append(singles, s), append(sessions, session)
	}})
	defer cluster.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ask := func(from int, name string) {
		reply, err := singleton.As[*wrapperspb.StringValue](singles[from].Ask(ctx,
			wrapperspb.String(name)))
		if err != nil {
			panic(err)
		}
		fmt.Println(reply.Value)
	}
	ask(0, "Ann")
	host := 0
	if at, _ := singles[0].Where(); at.Address == cluster.Member(1).Address {
		host = 1
	}
	if err := singles[host].Close(ctx); err != nil { // as node.Shutdown does
		panic(err)
	}
	ask(1-host, "Bob")
	_ = singles[1-host].Close(ctx)
	for _, s := range sessions {
		_ = s.Close(ctx)
	}
	// If the members have met before the move, which this example does not wait for, it prints:
	//
	//	Ann has ticket 1
	//	tenure 2 goes on after ticket 1 of tenure 1
	//	Bob has ticket 2
}

func Example() {
	store := memory.New() // a store that all members reach
	session, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		panic(err)
	}
	defer session.Close(context.Background())

	// The member is a virtual one here. See package node for a real one.
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
		reply, err := singleton.As[*wrapperspb.StringValue](counter.Ask(ctx,
			wrapperspb.String(name)))
		if err != nil {
			panic(err)
		}
		fmt.Println(reply.Value)
	}
	// Output:
	// Ann has ticket 1
	// Bob has ticket 2
}
