package distributeddata_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/testkit"
)

// asker is an actor that never blocks: it handles all responses in one case, and identifies them by
// key, outcome and echo.
type asker struct {
	got []string
	n   atomic.Int64 // notes, for other goroutines
}

func (a *asker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case distributeddata.Response:
		s := fmt.Sprintf("%T %s %v %v", m, m.ID(), m.Outcome(), m.Echo())
		if v, ok := cart.Value(m); ok {
			s += " " + v.String()
		}
		a.note(s[strings.LastIndex(s[:strings.IndexAny(s, "[ ")], ".")+1:])
	case *distributeddata.Changed[items]:
		a.note("Changed " + line(m))
	}
}

func (a *asker) note(s string) {
	a.got = append(a.got, s)
	a.n.Add(1)
}

// typeless is a response without the type arguments that %T shows.
func typeless(s string) string {
	from, to := strings.Index(s, "["), strings.LastIndex(s, "] ")
	if !strings.HasPrefix(s, "Changed ") && from >= 0 && to > from {
		return s[:from] + s[to+1:]
	}
	return s
}

// Every reply of Akka's replicator (distributed-data.md 1.2) and its equivalent here, read in one
// case of a type switch, built without a type argument, and sent with the asker's own context.
func TestMessages_EveryReplyOfTheOriginals(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		dd, system, a := c.at(0), c.Member(0).System, &asker{}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return a }))
		defer system.Root.Stop(pid)
		as := sender{system, pid}
		reply := func(want string, m distributeddata.Message) {
			t.Helper()
			a.got = nil
			dd.Request(as, m)
			time.Sleep(7 * time.Second)
			synctest.Wait()
			require.Len(t, a.got, 1, want)
			require.Equal(t, want, typeless(a.got[0]))
		}
		get := func(echo any, opts ...distributeddata.Option) distributeddata.Message {
			m := cart.GetMessage(opts...)
			m.Echo = echo
			return m
		}
		update := func(echo any, f func(*crdt.Writer, *items) error,
			opts ...distributeddata.Option) distributeddata.Message {
			m := cart.UpdateMessage(f, opts...)
			m.Echo = echo
			return m
		}
		remove := func(echo any, opts ...distributeddata.Option) distributeddata.Message {
			m := cart.DeleteMessage(opts...)
			m.Echo = echo
			return m
		}
		// NotFound
		reply("GetResponse cart not found 1", get(1))
		// NotFound
		reply("GetResponse cart not found 2", get(2, distributeddata.Majority))
		// UpdateSuccess
		reply("UpdateResponse cart success 3 {a}", update(3, addTo("a"), distributeddata.Majority))
		// GetSuccess
		reply("GetResponse cart success 4 {a}", get(4, distributeddata.All))
		// ModifyFailure
		reply("UpdateResponse cart refused 5", update(5, func(*crdt.Writer, *items) error {
			panic("no")
		}))
		// GetFailure
		reply("GetResponse cart not reached 6", get(6, distributeddata.Nodes(4)))
		// UpdateTimeout
		reply("UpdateResponse cart not reached 7", update(7, addTo("b"), distributeddata.Nodes(4)))
		// it stays
		reply("GetResponse cart success 8 {a b}", get(8))
		// DeleteSuccess
		reply("DeleteResponse cart success 9", remove(9, distributeddata.Majority))
		// ReplicationDeleteFailure
		reply("DeleteResponse cart not reached 10", remove(10, distributeddata.Nodes(4)))
		// DeleteSuccess
		reply("DeleteResponse cart success 11", remove(11, distributeddata.Permanently))
		// GetDataDeleted
		reply("GetResponse cart buried 12", get(12))
		// UpdateDataDeleted
		reply("UpdateResponse cart buried 13", update(13, addTo("a")))
		// DataDeleted: it is
		reply("DeleteResponse cart success 14", remove(14))
		// ReplicaCount
		reply("ReplicaCountResponse  success 15", &distributeddata.GetReplicaCount{Echo: 15})
		// GetKeyIdsResult
		reply("KeysResponse  success 16", &distributeddata.GetKeys{Echo: 16})
		reply("TransactionResponse  refused 17", &distributeddata.Transaction{
			Echo: 17, Modify: func(*distributeddata.Tx) error {
				return errors.New("no")
			}})
		reply("ForgetResponse nobody failed 18", &distributeddata.ForgetMember{
			Member: "nobody", Echo: 18})
		reply("GetResponse * failed 19", &distributeddata.Get[items]{
			Key: distributeddata.NewKey("*", items{}), Echo: 19})
		// Deleted
		reply("Changed cart [][] deleted key \"cart\": "+distributeddata.ErrDeleted.Error(),
			cart.SubscribeMessage(pid))

		c.Net.Partition(addresses(c, 0), addresses(c, 1, 2))
		reply("GetResponse cart not reached 20", get(20, distributeddata.Majority)) // GetFailure
	})
}

// sender is the part of an actor's context that a request needs.
type sender struct {
	system *actor.ActorSystem
	pid    *actor.PID
}

func (s sender) Request(to *actor.PID, m any) {
	s.system.Root.RequestWithCustomSender(to, m, s.pid)
}

// The names of entries and the number of replicas, also before the replicator runs and after it has
// been closed.
func TestMessages_KeysAndReplicaCount(t *testing.T) {
	alone(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		p := testkit.NewProbe(t, system)
		p.Send(dd.PID(), carts.Key("1").UpdateMessage(addTo("a")))
		p.Request(dd.PID(), &distributeddata.GetKeys{Prefix: "cart-"})
		p.Request(dd.PID(), distributeddata.GetKeys{Prefix: "other"}) // by value
		p.ExpectNone(time.Second)
		up()
		require.NoError(t, dd.Ready(context.Background()))
		keys := func() []string {
			r := testkit.Expect[*distributeddata.KeysResponse](p)
			names, err := r.Result()
			require.Equal(t, err, r.Err())
			return slices.Collect(names)
		}
		require.Equal(t, []string{"cart-1"}, keys(), "what was sent before shows")
		require.Empty(t, keys())
		p.Request(dd.PID(), &distributeddata.GetReplicaCount{})
		n := testkit.Expect[*distributeddata.ReplicaCountResponse](p)
		require.Equal(t, []any{1, 1, true}, []any{n.Seen, n.Counted, n.Ready})
		for _, fail := range []evil{func() { panic("no") }, runtime.Goexit} {
			p.Request(dd.PID(), &distributeddata.GetKeys{
				Adapt: func(*distributeddata.KeysResponse) any {
					fail()
					return nil
				}})
			require.Equal(t, []string{"cart-1"}, keys(), "goes out as it is")
			p.Request(dd.PID(), carts.Key("1").GetMessage().Then(func(items, error) any {
				fail()
				return nil
			}))
			testkit.Expect[*distributeddata.GetResponse[items]](p)
		}
		require.NoError(t, dd.Close(context.Background()))
		p.Request(dd.PID(), &distributeddata.GetKeys{Echo: "echo"})
		r := testkit.Expect[*distributeddata.KeysResponse](p)
		require.Equal(t, "echo", r.Echo())
		require.ErrorIs(t, r.Err(), distributeddata.ErrClosed)
		require.Equal(t, distributeddata.Failed, r.Outcome())
		p.Request(dd.PID(), &distributeddata.GetReplicaCount{})
		require.ErrorIs(t, resultOf(testkit.Expect[*distributeddata.ReplicaCountResponse](p)),
			distributeddata.ErrClosed)
	})
}

// Then gives the asker a message of its own protocol, whatever the outcome.
func TestMessages_InTheWordsOfTheAsker(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		p := testkit.NewProbe(t, system)
		said := func(want string, m distributeddata.Message) {
			t.Helper()
			p.Request(dd.PID(), m)
			require.Equal(t, want, testkit.Expect[string](p))
		}
		value := func(v items, err error) any { return fmt.Sprint(v, err) }
		done := func(err error) any { return fmt.Sprint(err) }
		said("{a} <nil>", cart.UpdateMessage(addTo("a")).Then(value))
		said("{a} <nil>", cart.GetMessage(distributeddata.Majority).Then(value))
		said("<nil>", cart.DeleteMessage().Then(done))
		said("<nil>", (&distributeddata.Transaction{Modify: func(*distributeddata.Tx) error {
			return nil
		}}).Then(done))
		p.Send(dd.PID(), carts.SubscribeMessage(p.PID()).Then(
			func(c *distributeddata.Changed[items]) any {
				return line(c)
			}))
		p.Send(dd.PID(), carts.Key("1").UpdateMessage(addTo("a")))
		require.Equal(t, "cart-1 [][a]", testkit.Expect[string](p))
		p.Send(dd.PID(), carts.UnsubscribeMessage(p.PID()))
		p.Send(dd.PID(), cart.UnsubscribeMessage(p.PID()))
		p.Send(dd.PID(), carts.Key("1").UpdateMessage(addTo("b")))
		p.ExpectNone(time.Second)
	})
}

// The text of a panic is one line, and its stack a field.
func TestModifyError_TheStackIsAField(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		ctx, reason := context.Background(), errors.New("full")
		panics := func(*crdt.Writer, *items) error { panic("boom") }
		_, err := cart.Update(ctx, dd, panics)
		require.EqualError(t, err, `key "cart": distributeddata: update refused: panic: boom`)
		e, ok := errors.AsType[*distributeddata.ModifyError](err)
		require.True(t, ok)
		require.Equal(t, "cart", e.Key)
		require.Contains(t, e.Stack, "TestModifyError_TheStackIsAField")
		err = distributeddata.Atomically(ctx, dd, func(*distributeddata.Tx) error { return reason })
		require.EqualError(t, err, "distributeddata: update refused: full")
		e, ok = errors.AsType[*distributeddata.ModifyError](err)
		require.True(t, ok)
		require.Same(t, reason, e.Reason)
		require.Empty(t, e.Stack)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		require.ErrorIs(t, err, reason)
		testkit.ExpectLog(t, system,
			testkit.Log{Message: "an update without a waiter was rejected"}, func() {
				system.Root.Send(dd.PID(), cart.UpdateMessage(panics))
				synctest.Wait()
			})
	})
}

func TestOutcome_InWords(t *testing.T) {
	require.Equal(t, "not reached", distributeddata.NotReached.String())
	require.Equal(t, "failed", distributeddata.Failed.String())
	require.Equal(t, "Outcome(99)", distributeddata.Outcome(99).String())
	require.Equal(t, "Outcome(-1)", distributeddata.Outcome(-1).String())
	require.Equal(t, "unclear", distributeddata.Unclear.String())
	require.Equal(t, "buried", distributeddata.Buried.String())
}
