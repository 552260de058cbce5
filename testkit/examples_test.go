package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/singleton"
	"github.com/concord-go/concord/testkit"
)

// The first example is a counter of visitors.
type visit struct{ name string }

type welcome struct {
	name   string
	number int
}

func visitors() *actor.Props {
	number := 0
	return actor.PropsFromFunc(func(ctx actor.Context) {
		if v, ok := ctx.Message().(*visit); ok {
			number++
			ctx.Respond(&welcome{v.name, number})
		}
	})
}

// A probe stands in for the sender of messages to the actor.
func TestExample_Probe(t *testing.T) {
	system := testkit.NewSystem(t)
	door := system.Root.Spawn(visitors())
	probe := testkit.NewProbe(t, system)

	probe.Request(door, &visit{"Ann"})
	probe.Request(door, &visit{"Bob"})
	if w := testkit.Expect[*welcome](probe); w.number != 1 {
		t.Errorf("Ann is number %d", w.number)
	}
	last := testkit.Fish(probe, func(w *welcome) testkit.Outcome {
		if w.name == "Bob" {
			return testkit.Done
		}
		return testkit.Continue
	})
	if last[0].number != 2 {
		t.Errorf("Bob is number %d", last[0].number)
	}
	probe.ExpectNone(10 * time.Millisecond)
}

type cart = crdt.ORSet[string]

var shopping = distributeddata.NewKey("cart", cart{})

func put(dd *distributeddata.Replicator, item string) error {
	_, err := shopping.Update(context.Background(), dd, func(w *crdt.Writer, c *cart) error {
		c.Add(w, item)
		return nil
	}, distributeddata.Local)
	return err
}

// sameAtAll returns an error for a member that does not have these items, in order.
func sameAtAll(c *testkit.Cluster, dd *testkit.PerMember[*distributeddata.Replicator],
	want ...string) error {
	for _, m := range c.Members() {
		items, err := shopping.Get(context.Background(), dd.Of(m))
		if got := slices.Collect(items.All()); !slices.Equal(got, want) {
			return fmt.Errorf("member %v has %v, %w", m, got, err)
		}
	}
	return nil
}

// Five members are partitioned for an hour and then have the changes of both sides.
func TestExample_FiveNodeHour(t *testing.T) {
	testkit.Run(t, 5, func(t *testing.T, c *testkit.Cluster) {
		dd := testkit.Each(c, func(m *testkit.Member) (*distributeddata.Replicator, error) {
			return distributeddata.New(m.System, distributeddata.Config{MinMembers: 5,
				HeartbeatInterval: 10 * time.Second})
		})
		c.Ready()

		c.Partition([]int{0, 1}, []int{2, 3, 4})
		if err := errors.Join(put(dd.At(0), "milk"), put(dd.At(4), "bread")); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Hour)
		if err := sameAtAll(c, dd, "milk"); err == nil {
			t.Error("the partition does not part")
		}

		c.Heal()
		testkit.Eventually(t, time.Minute, func() error {
			return sameAtAll(c, dd, "bread", "milk")
		})
	})
}

// clock answers with the token of its tenure.
type clock struct{ tenure coordination.Tenure }

func (c *clock) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.StringValue); ok && c.tenure.Check() == nil {
		ctx.Respond(wrapperspb.UInt64(uint64(c.tenure.Token())))
	}
}

// This example runs a guarded actor alone, with a tenure that the test ends.
func TestExample_GuardedActor(t *testing.T) {
	tenure, end := testkit.Tenure(t, 7)
	one := testkit.Isolate(t, actor.PropsFromProducer(func() actor.Actor { return &clock{tenure} }))
	one.Effects() // effects of its start

	one.Request(wrapperspb.String("time?"))
	if reply := testkit.ExpectEffect[*testkit.Sent](
		one).Message.(*wrapperspb.UInt64Value); reply.Value != 7 {
		t.Errorf("token %d", reply.Value)
	}
	end()
	one.Request(wrapperspb.String("time?"))
	one.ExpectNoEffect()
}

// A singleton moves when the member that hosts it crashes.
func TestExample_SingletonSurvivesACrash(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		clocks := testkit.Each(c, func(m *testkit.Member) (*singleton.Singleton, error) {
			return singleton.New(m.System, m.Session, singleton.Config{Name: "clock"},
				func(t coordination.Tenure) actor.Actor { return &clock{t} })
		})
		ask := func(i int) uint64 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			token, err := singleton.As[*wrapperspb.UInt64Value](clocks.At(i).Ask(ctx,
				wrapperspb.String("time?")))
			if err != nil {
				t.Fatal(err)
			}
			return token.Value
		}
		first := ask(0)
		place, _ := clocks.At(0).Where()
		for _, m := range c.Members() {
			if m.Address == place.Address {
				m.Crash()
				m.Expel()
			}
		}
		c.Advance(time.Minute) // until the lease expires
		if second := ask(c.Members()[0].Index); second <= first {
			t.Errorf("token %d after %d", second, first)
		}
	})
}
