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
// key, error and echo.
type asker struct {
	got []string
	n   atomic.Int64 // notes, for other goroutines
}

func (a *asker) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case distributeddata.Response:
		s := fmt.Sprintf("%T %s %v %v", m, m.ID(), kind(m.Err()), m.Echo())
		if r, ok := m.(interface{ Result() (items, error) }); ok && m.Err() == nil {
			if _, deleted := m.(*distributeddata.DeleteResponse[items]); !deleted {
				v, _ := r.Result()
				s += " " + v.String()
			}
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

// kind is the reply of Akka's replicator that an error stands for.
func kind(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{
		{nil, "success"},
		{distributeddata.ErrModify, "refused"},
		{distributeddata.ErrNotFound, "not found"},
		{distributeddata.ErrDeleted, "deleted"},
		{distributeddata.ErrQuorum, "not reached"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return "failed"
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
		get := func(echo any, at ...distributeddata.Consistency) distributeddata.Message {
			m := cart.GetMessage(at...)
			m.Echo = echo
			return m
		}
		update := func(echo any, f func(*crdt.Writer, *items) error,
			at ...distributeddata.Consistency) distributeddata.Message {
			m := cart.UpdateMessage(f, stated(at))
			m.Echo = echo
			return m
		}
		remove := func(echo any, at distributeddata.Consistency,
			opts ...distributeddata.Option) distributeddata.Message {
			m := cart.DeleteMessage(at, opts...)
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
		reply("DeleteResponse cart success 11", remove(11, local,
			distributeddata.Permanently))
		// GetDataDeleted
		reply("GetResponse cart deleted 12", get(12))
		// UpdateDataDeleted
		reply("UpdateResponse cart deleted 13", update(13, addTo("a")))
		// DataDeleted: it is
		reply("DeleteResponse cart success 14", remove(14, local))
		reply("TransactionResponse  refused 17", &distributeddata.Transaction{
			Echo: 17, At: local, Modify: func(*distributeddata.Tx) error {
				return errors.New("no")
			}})
		reply("GetResponse * failed 19", &distributeddata.Get[items]{
			Key: distributeddata.NewKey("*", items{}), Echo: 19})
		// Deleted
		reply("Changed cart [][] deleted key \"cart\": "+distributeddata.ErrDeleted.Error(),
			&distributeddata.Subscribe[items]{Key: cart, Subscriber: pid})

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

// A response that Adapt fails to adapt goes out as it is; after Close the response is ErrClosed.
func TestMessages_AdaptThatFails(t *testing.T) {
	alone(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		p := testkit.NewProbe(t, system)
		p.Send(dd.PID(), carts.Key("1").UpdateMessage(addTo("a"), local))
		p.Request(dd.PID(), *carts.Key("1").GetMessage()) // by value
		p.ExpectNone(time.Second)
		up()
		require.NoError(t, dd.Ready(context.Background()))
		got := func() string {
			v, err := testkit.Expect[*distributeddata.GetResponse[items]](p).Result()
			return fmt.Sprint(v, err)
		}
		require.Equal(t, "{a} <nil>", got(), "what was sent before shows")
		require.Equal(t, []string{"cart-1"}, slices.Collect(dd.Keys()))
		for _, fail := range []evil{func() { panic("no") }, runtime.Goexit} {
			m := carts.Key("1").GetMessage()
			m.Adapt = func(*distributeddata.GetResponse[items]) any {
				fail()
				return nil
			}
			p.Request(dd.PID(), m)
			require.Equal(t, "{a} <nil>", got(), "goes out as it is")
		}
		require.NoError(t, dd.Close(context.Background()))
		m := carts.Key("1").UpdateMessage(addTo("b"), local)
		m.Echo = "echo"
		p.Request(dd.PID(), m)
		r := testkit.Expect[*distributeddata.UpdateResponse[items]](p)
		require.Equal(t, "echo", r.Echo())
		require.ErrorIs(t, r.Err(), distributeddata.ErrClosed)
	})
}

// Adapt gives the asker a message of its own protocol, whatever the outcome.
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
		update := cart.UpdateMessage(addTo("a"), local)
		update.Adapt = func(r *distributeddata.UpdateResponse[items]) any {
			return fmt.Sprint(r.Result())
		}
		said("{a} <nil>", update)
		get := cart.GetMessage(distributeddata.Majority)
		get.Adapt = func(r *distributeddata.GetResponse[items]) any {
			return fmt.Sprint(r.Result())
		}
		said("{a} <nil>", get)
		remove := cart.DeleteMessage(local)
		remove.Adapt = func(r *distributeddata.DeleteResponse[items]) any {
			return fmt.Sprint(r.Err())
		}
		said("<nil>", remove)
		said("<nil>", &distributeddata.Transaction{
			Modify: func(*distributeddata.Tx) error { return nil }, At: local,
			Adapt: func(r *distributeddata.TransactionResponse) any {
				return fmt.Sprint(r.Err())
			},
		})
		p.Send(dd.PID(), &distributeddata.Subscribe[items]{Key: carts, Subscriber: p.PID(),
			Adapt: func(c *distributeddata.Changed[items]) any { return line(c) }})
		p.Send(dd.PID(), carts.Key("1").UpdateMessage(addTo("a"), local))
		require.Equal(t, "cart-1 [][a]", testkit.Expect[string](p))
		p.Send(dd.PID(), &distributeddata.Unsubscribe[items]{Key: carts, Subscriber: p.PID()})
		p.Send(dd.PID(), &distributeddata.Unsubscribe[items]{Key: cart, Subscriber: p.PID()})
		p.Send(dd.PID(), carts.Key("1").UpdateMessage(addTo("b"), local))
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
		_, err := cart.Update(ctx, dd, panics, local)
		require.EqualError(t, err, `key "cart": distributeddata: update refused: panic: boom`)
		e, ok := errors.AsType[*distributeddata.ModifyError](err)
		require.True(t, ok)
		require.Equal(t, "cart", e.Key)
		require.Contains(t, e.Stack, "TestModifyError_TheStackIsAField")
		err = distributeddata.Atomically(ctx, dd, func(*distributeddata.Tx) error { return reason },
			local)
		require.EqualError(t, err, "distributeddata: update refused: full")
		e, ok = errors.AsType[*distributeddata.ModifyError](err)
		require.True(t, ok)
		require.Same(t, reason, e.Reason)
		require.Empty(t, e.Stack)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		require.ErrorIs(t, err, reason)
		testkit.ExpectLog(t, system,
			testkit.Log{Message: "an update without a waiter was rejected"}, func() {
				system.Root.Send(dd.PID(), cart.UpdateMessage(panics, local))
				synctest.Wait()
			})
	})
}
