package acceptance

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/testkit"
)

// text and number are the messages of these tests: any protobuf messages will do.
type (
	text   = wrapperspb.StringValue
	number = wrapperspb.Int64Value
)

// cart confirms each item, lists them, and gives up when it is idle.
type cart struct {
	items []string
	shop  *actor.PID // is told about items if it is set
}

func (c *cart) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *text:
		c.items = append(c.items, m.Value)
		ctx.Logger().Warn("item added", slog.String("item", m.Value))
		if ctx.Sender() != nil {
			ctx.Respond(wrapperspb.Int64(int64(len(c.items))))
		}
		if c.shop != nil {
			ctx.Send(c.shop, m)
		}
	case *emptypb.Empty:
		for _, item := range c.items {
			ctx.Respond(wrapperspb.String(item))
		}
		ctx.Respond(wrapperspb.Int64(int64(len(c.items))))
	case *actor.PoisonPill:
	}
}

func newCart(shop *actor.PID) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return &cart{shop: shop} })
}

func TestActor_AnswersWithAValue(t *testing.T) {
	system := testkit.NewSystem(t)
	cart, probe := system.Root.Spawn(newCart(nil)), testkit.NewProbe(t, system)
	probe.Request(cart, wrapperspb.String("milk"))
	probe.ExpectAllOf(wrapperspb.Int64(1))
	probe.Request(cart, wrapperspb.String("bread"))
	require.EqualValues(t, 2, testkit.Expect[*number](probe).Value)
	probe.ExpectNone(50 * time.Millisecond)
}

func TestActor_AnswersInAnyOrder(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		probe := testkit.NewProbe(t, system)
		a, b := system.Root.Spawn(newCart(probe.PID())), system.Root.Spawn(newCart(probe.PID()))
		probe.Send(a, wrapperspb.String("milk"))
		probe.Send(b, wrapperspb.String("bread"))
		probe.ExpectAllOf(wrapperspb.String("bread"), wrapperspb.String("milk"))
		probe.Send(a, wrapperspb.String("wine"))
		got := probe.ExpectAnyOf(wrapperspb.String("wine"), wrapperspb.String("beer"))
		require.Equal(t, "wine", got.(*text).Value)
	})
}

func TestActor_ListsUntilTheLast(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		cart, probe := system.Root.Spawn(newCart(nil)), testkit.NewProbe(t, system)
		for i := range 3 {
			probe.Send(cart, wrapperspb.String(fmt.Sprint("item ", i)))
		}
		probe.Request(cart, &emptypb.Empty{})
		items := testkit.Fish(probe, func(m any) testkit.Outcome {
			switch m.(type) {
			case *text:
				return testkit.Collect
			case *number:
				return testkit.Leave
			}
			return testkit.Unwanted
		})
		require.Len(t, items, 3)
		probe.ExpectAllOf(wrapperspb.Int64(3))
	})
}

func TestActor_TakesItsTime(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		probe := testkit.NewProbe(t, system)
		slow := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*text); ok {
				time.Sleep(5 * time.Second)
				ctx.Respond(m)
			}
		}))
		took := probe.Within(6*time.Second, func() {
			probe.Request(slow, wrapperspb.String("milk"))
			testkit.Expect[*text](probe)
		})
		require.GreaterOrEqual(t, took, 5*time.Second)
	})
}

func TestActor_StopsAndReportsNoMore(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		cart, probe := system.Root.Spawn(newCart(nil)), testkit.NewProbe(t, system)
		testkit.ExpectLog(t, system, testkit.Log{Level: slog.LevelWarn, Message: "item added",
			Attrs: map[string]any{"item": "milk"}}, func() {
			probe.Send(cart, wrapperspb.String("milk"))
		})
		probe.Watch(cart)
		testkit.ExpectNoDeadLetter(t, system, func() { probe.Send(cart, &actor.PoisonPill{}) })
		probe.ExpectTerminated(cart)
		lost := testkit.ExpectDeadLetter[*text](t, system, func() {
			probe.Send(cart, wrapperspb.String("late"))
		})
		require.Equal(t, "late", lost.Value)
	})
}

func TestActor_WithAPartnerThatAnswersByItself(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		shop := testkit.NewProbe(t, system)
		shop.Autopilot(func(ctx actor.Context) {
			if m, ok := ctx.Message().(*text); ok {
				ctx.Respond(wrapperspb.String("sold: " + m.Value))
			}
		})
		probe := testkit.NewProbe(t, system)
		probe.Request(shop.PID(), wrapperspb.String("milk"))
		probe.ExpectAllOf(wrapperspb.String("sold: milk"))
	})
}

func TestMessage_SurvivesTheWire(t *testing.T) {
	require.Equal(t, "milk", testkit.RoundTrip(t, wrapperspb.String("milk")).Value)
}

// guarded works only while it holds its lease.
func guarded(check func() error) *actor.Props {
	return actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*text); ok && check() == nil {
			ctx.Respond(m)
		}
	})
}

func TestActor_DoesNothingAfterItsLease(t *testing.T) {
	tenure, end := testkit.Tenure(t, 7)
	one := testkit.Isolate(t, guarded(tenure.Check))
	one.Effects()
	one.Request(wrapperspb.String("milk"))
	testkit.ExpectEffect[*testkit.Sent](one)
	end()
	one.Request(wrapperspb.String("milk"))
	one.ExpectNoEffect()
}
