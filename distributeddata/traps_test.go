package distributeddata_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/testkit"
)

// Things that vanished without an answer, a dead letter or a log line.

// early runs a cluster of one whose test begins before the member is up; calling up lists it.
func early(t *testing.T, test func(t *testing.T, system *actor.ActorSystem,
	dd *distributeddata.Replicator, up func())) {
	alone(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		defer func() { require.NoError(t, dd.Close(context.Background())) }()
		test(t, system, dd, up)
	})
}

// alone is early for a test that closes the replicator itself.
func alone(t *testing.T, test func(t *testing.T, system *actor.ActorSystem,
	dd *distributeddata.Replicator, up func())) {
	simnet.Bubble(t, func(t *testing.T) {
		c := simnet.NewCluster(simnet.Config{System: func(string) *actor.ActorSystem {
			return testkit.NewSystem(t, testkit.WithLogs())
		}})
		defer c.Close()
		m := c.Start("node-0:1")
		dd, err := distributeddata.New(m.System, distributeddata.Config{MinMembers: 1})
		require.NoError(t, err)
		test(t, m.System, dd, func() {
			c.List(c.Live(), c.Live())
			synctest.Wait()
		})
	})
}

func addTo(elems ...string) func(w *crdt.Writer, v *items) error {
	return func(w *crdt.Writer, v *items) error { v.Add(w, elems...); return nil }
}

// Before, Key.Subscribe did nothing, and sending to the PID, which was nil, caused a panic inside
// Proto.Actor.
func TestPID_MessagesBeforeTheStartWaitInOrder(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		p := testkit.NewProbe(t, system)
		stop := cart.Subscribe(dd, p.PID(), nil)
		p.Request(dd.PID(), &distributeddata.Update[items]{Key: cart,
			At: local, Modify: addTo("a")})
		p.Send(dd.PID(), &distributeddata.Update[items]{Key: cart, At: local, Modify: addTo("b")})
		p.Request(dd.PID(), &distributeddata.Get[items]{Key: cart})
		p.ExpectNone(time.Minute)
		require.ErrorIs(t, func() error {
			_, err := cart.Get(context.Background(), dd)
			return err
		}(), distributeddata.ErrClosed)
		_, err := cart.Update(context.Background(), dd, addTo("c"), local)
		require.ErrorIs(t, err, distributeddata.ErrClosed)
		require.ErrorContains(t, err, "not started yet")
		up()
		r := testkit.Expect[*distributeddata.UpdateResponse[items]](p)
		require.NoError(t, resultOf(r))
		v, err := testkit.Expect[*distributeddata.GetResponse[items]](p).Result()
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, slices.Collect(v.All()))
		require.Equal(t, 2, testkit.Expect[*distributeddata.Changed[items]](p).Value.Len())
		stop()
		p.Send(dd.PID(), &distributeddata.Update[items]{Key: cart, At: local, Modify: addTo("d")})
		p.ExpectNone(time.Minute)
	})
}

func resultOf[T any](r interface{ Result() (T, error) }) error {
	_, err := r.Result()
	return err
}

// The messages that wait for the start are bounded; a further one is answered, or becomes a dead
// letter.
func TestPID_MessagesBeforeTheStartAreBounded(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		p := testkit.NewProbe(t, system)
		n := distributeddata.NewKey("n", crdt.GCounter{})
		add := &distributeddata.Update[crdt.GCounter]{
			Key: n, At: local, Modify: func(w *crdt.Writer, v *crdt.GCounter) error {
				v.Add(w, 1)
				return nil
			}}
		for range 1024 {
			p.Send(dd.PID(), add)
		}
		p.Request(dd.PID(), add)
		err := resultOf(testkit.Expect[*distributeddata.UpdateResponse[crdt.GCounter]](p))
		require.ErrorIs(t, err, distributeddata.ErrClosed)
		require.ErrorContains(t, err, "1024 messages wait already")
		testkit.ExpectDeadLetter[*distributeddata.Update[crdt.GCounter]](t, system, func() {
			p.Send(dd.PID(), add)
		})
		up()
		v, err := n.Get(context.Background(), dd)
		require.NoError(t, err)
		require.EqualValues(t, 1024, v.Value())
	})
}

func TestPID_AfterCloseEveryRequestIsAnswered(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		require.NoError(t, dd.Close(context.Background()))
		p := testkit.NewProbe(t, system)
		p.Request(dd.PID(), &distributeddata.Get[items]{Key: cart})
		require.ErrorIs(t, resultOf(testkit.Expect[*distributeddata.GetResponse[items]](p)),
			distributeddata.ErrClosed)
		testkit.ExpectDeadLetter[*distributeddata.Subscribe[items]](t, system, func() {
			cart.Subscribe(dd, p.PID(), nil)
		})
		p.Watch(dd.PID())
		p.ExpectTerminated(dd.PID())
	})
}

// A request sent by value instead of as a pointer is a request.
func TestMessages_ByValueAreCarriedOut(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		p := testkit.NewProbe(t, system)
		p.Send(dd.PID(), distributeddata.Subscribe[items]{Key: cart, Subscriber: p.PID()})
		p.Request(dd.PID(), distributeddata.Update[items]{Key: cart, At: local, Modify: addTo("a")})
		require.NoError(t, resultOf(testkit.Expect[*distributeddata.UpdateResponse[items]](p)))
		p.Request(dd.PID(), distributeddata.Transaction{Modify: func(tx *distributeddata.Tx) error {
			cart.In(tx).Add(tx.Writer, "b")
			return nil
		}, At: local})
		require.NoError(t, resultOf(testkit.Expect[*distributeddata.TransactionResponse](p)))
		require.Equal(t, 2, testkit.Expect[*distributeddata.Changed[items]](p).Value.Len())
		p.Send(dd.PID(), distributeddata.Unsubscribe[items]{Key: cart, Subscriber: p.PID()})
		p.Request(dd.PID(), distributeddata.Delete[items]{Key: cart, At: local})
		require.NoError(t, resultOf(testkit.Expect[*distributeddata.DeleteResponse[items]](p)))
		p.Request(dd.PID(), distributeddata.Get[items]{Key: cart})
		require.ErrorIs(t, resultOf(testkit.Expect[*distributeddata.GetResponse[items]](p)),
			distributeddata.ErrNotFound)
		p.ExpectNone(time.Second)
	})
}

type misdirected struct{ secret string }

// Unknown messages become dead letters; only their types are logged, once.
func TestMessages_OfUnknownTypesAreDeadLettersAndLogged(t *testing.T) {
	early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
		up func()) {
		up()
		p := testkit.NewProbe(t, system)
		testkit.ExpectLog(t, system, testkit.Log{Message: "message of an unknown type",
			Attrs: map[string]any{"type": "distributeddata_test.misdirected"}, Times: 1}, func() {
			for range 5 {
				m := testkit.ExpectDeadLetter[misdirected](t, system, func() {
					p.Send(dd.PID(), misdirected{"x"})
				})
				require.Equal(t, "x", m.secret)
			}
		})
		p.Request(dd.PID(), (*distributeddata.Get[items])(nil))
		testkit.Expect[*actor.DeadLetterResponse](p)
		_, err := cart.Update(context.Background(), dd, addTo("a"), local)
		require.NoError(t, err, "it runs on")
	})
}

// A panic of Adapt restarted the actor, which then was another replica, and empty.
func TestAdapt_MayPanicOrExit(t *testing.T) {
	for name, fail := range map[string]func(){"panic": func() {
		panic("boom")
	}, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			early(t, func(t *testing.T, system *actor.ActorSystem, dd *distributeddata.Replicator,
				up func()) {
				up()
				was := dd.Status().Replica
				p, q := testkit.NewProbe(t, system), testkit.NewProbe(t, system)
				cart.Subscribe(dd, p.PID(), func(*distributeddata.Changed[items]) any {
					fail()
					return nil
				})
				cart.Subscribe(dd, q.PID(), nil)
				p.Request(dd.PID(), &distributeddata.Update[items]{
					Key: cart, Modify: addTo("a"), At: distributeddata.Majority,
					Adapt: func(*distributeddata.UpdateResponse[items]) any { fail(); return nil },
				})
				require.NoError(
					t, resultOf(testkit.Expect[*distributeddata.UpdateResponse[items]](p)))
				p.Request(dd.PID(), &distributeddata.Get[items]{
					Key: cart, Adapt: func(*distributeddata.GetResponse[items]) any {
						fail()
						return nil
					},
				})
				require.NoError(t, resultOf(testkit.Expect[*distributeddata.GetResponse[items]](p)))
				testkit.Expect[*distributeddata.Changed[items]](p)
				testkit.Expect[*distributeddata.Changed[items]](q)
				_, err := cart.Update(context.Background(), dd, addTo("b"), local)
				require.NoError(t, err)
				testkit.Expect[*distributeddata.Changed[items]](p)
				require.Equal(t, 2, testkit.Expect[*distributeddata.Changed[items]](q).Value.Len())
				require.Equal(t, was, dd.Status().Replica)
			})
		})
	}
}

// exited runs f on a goroutine of its own until that ends.
func exited(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// A modify function that ends its goroutine fails only its update. Before, the actor never ran
// again.
func TestModify_MayExit(t *testing.T) {
	early(t, func(t *testing.T, _ *actor.ActorSystem, dd *distributeddata.Replicator, up func()) {
		up()
		ctx := context.Background()
		was := dd.Status().Replica
		returned := false
		exited(func() {
			_, _ = cart.Update(ctx, dd, func(w *crdt.Writer, v *items) error {
				v.Add(w, "x")
				runtime.Goexit()
				return nil
			}, local)
			returned = true
		})
		require.False(t, returned, "at Local the function ends the goroutine of its caller")
		_, err := cart.Update(ctx, dd, func(w *crdt.Writer, v *items) error {
			v.Add(w, "x")
			runtime.Goexit()
			return nil
		}, distributeddata.Majority)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		require.ErrorContains(t, err, "Goexit")
		err = distributeddata.Atomically(ctx, dd, func(tx *distributeddata.Tx) error {
			cart.In(tx).Add(tx.Writer, "y")
			runtime.Goexit()
			return nil
		}, local)
		require.ErrorIs(t, err, distributeddata.ErrModify)
		v, err := cart.Update(ctx, dd, addTo("a"), local)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, slices.Collect(v.All()))
		require.Equal(t, was, dd.Status().Replica)
	})
}
