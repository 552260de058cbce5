package distributeddata_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// fuse makes a step of the first member's replicator panic, after a number of places.
type fuse struct {
	left  atomic.Int64
	every atomic.Bool // and then at each place
	reach int
}

// run runs a test on three members.
func (f *fuse) run(t *testing.T, test func(c *cluster)) {
	t.Helper()
	(&cluster{t: t, cfg: distributeddata.Config{MinMembers: 3}, setup: f.setup}).run(3, test)
}

func (f *fuse) setup(dd *distributeddata.Replicator) {
	if f.reach++; f.reach > 1 {
		return
	}
	dd.Reach(func(place string) {
		if f.left.Add(-1) == 0 || f.every.Load() && place == "before install" {
			panic("planted " + place)
		}
	})
}

// hearer stores the count that one subscriber was last sent.
type hearer struct{ last uint64 }

var clicks = distributeddata.NewKey("clicks", crdt.GCounter{})

func (h *hearer) Receive(ctx actor.Context) {
	if m, ok := ctx.Message().(*distributeddata.Changed[crdt.GCounter]); ok {
		h.last = m.Value.Value()
	}
}

func click(ctx context.Context, dd *distributeddata.Replicator,
	at ...distributeddata.Consistency) error {
	_, err := clicks.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GCounter) error {
		v.Add(w, 1)
		return nil
	}, stated(at))
	return err
}

// A panic of our own code, wherever it hits: the replica continues under its id, ready, with its
// subscribers; nothing acknowledged is lost, and every call is answered in time.
func TestResume_WhateverAPanicInterrupts(t *testing.T) {
	var f fuse
	f.run(t, func(c *cluster) {
		h := &hearer{}
		system := c.Member(0).System
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return h }))
		clicks.Subscribe(c.at(0), pid, nil)
		was, acked := c.at(0).Status().Replica, uint64(0)
		unknown := 0
		for place := int64(1); place <= 40; place++ {
			time.Sleep(25 * time.Second) // earlier panics are forgotten
			panics := c.at(0).Status().Panics
			f.left.Store(place)
			writes, reads := make(chan error, 3), make(chan error, 3)
			for i := range 3 { // at once: foreign pushes and updates arrive while own ones wait
				go func() {
					writes <- click(context.Background(), c.at(i), distributeddata.Majority)
				}()
				go func() {
					_, err := clicks.Get(context.Background(), c.at(i),
						distributeddata.Linearizable)
					reads <- err
				}()
			}
			system.Root.Send(c.at(0).PID(), &distributeddata.Update[crdt.GCounter]{
				Key: clicks, At: local, Modify: func(w *crdt.Writer, v *crdt.GCounter) error {
					v.Add(w, 1)
					return nil
				}})
			synctest.Wait()
			for range 3 {
				if err := <-writes; err == nil {
					acked++
				} else {
					require.ErrorIs(t, err, distributeddata.ErrUnknown, "place %d", place)
					unknown++
				}
				if err := <-reads; err != nil {
					require.ErrorIs(t, err, distributeddata.ErrUnknown, "place %d", place)
					unknown++
				}
			}
			time.Sleep(5 * time.Second)
			for f.left.Load() > 0 { // heartbeats reach it
				time.Sleep(time.Second)
			}
			time.Sleep(3 * time.Second)
			s := c.at(0).Status()
			require.Equal(t, panics+1, s.Panics)
			require.Equal(t, was, s.Replica)
			require.True(t, s.Ready)
			v, err := clicks.Get(context.Background(), c.at(0), distributeddata.Majority)
			require.NoError(t, err)
			require.GreaterOrEqual(t, v.Value(), acked, "place %d", place)
			require.LessOrEqual(t, v.Value(), uint64(4*place), "place %d", place)
			require.Equal(t, v.Value(), h.last, "place %d: the subscriber", place)
			for i := range 3 {
				require.Equal(t, c.at(0).Status().Seen, c.at(i).Status().Seen, "place %d", place)
			}
		}
		require.LessOrEqual(t, unknown, 80, "a panic interrupts the calls of its member alone")
		system.Root.Stop(pid)
	})
}

// A replica that panics repeatedly, whatever is tried, says so and stops serving. It keeps its
// state, also what no other member has; the others continue without it, and a new process is
// refilled.
func TestResume_RepeatedPanicsKeepTheState(t *testing.T) {
	var f fuse
	f.run(t, func(c *cluster) {
		require.NoError(t, c.add(1, "milk", distributeddata.All))
		was := c.at(0).Status()
		heal := c.split([]int{0}, []int{1, 2})
		require.NoError(t, c.add(0, "here only"))
		synctest.Wait() // it has been committed
		f.every.Store(true)
		require.NoError(t, c.add(0, "answered")) // before the commit, which panics
		require.ErrorIs(t, c.add(0, "bread", distributeddata.Majority), distributeddata.ErrUnknown)
		for c.at(0).Status().Panics < was.Panics+6 {
			time.Sleep(time.Second)
		}
		f.every.Store(false)
		heal()
		time.Sleep(time.Minute)
		s := c.at(0).Status()
		require.Equal(t, was.Replica, s.Replica, "its state is kept")
		require.False(t, s.Ready)
		require.Contains(t, s.NotReady, "stopped serving after repeated panics")
		require.ErrorContains(t, lifecycle.Of(c.Member(0).System).Check(), "stopped serving")
		require.Subset(t, c.elements(0), []string{"here only", "answered"},
			"it can be inspected")
		err := c.add(0, "eggs")
		require.ErrorIs(t, err, distributeddata.ErrClosed)
		require.ErrorContains(t, err, "restart the process")
		_, err = cart.Get(context.Background(), c.at(0), distributeddata.Majority)
		require.ErrorIs(t, err, distributeddata.ErrClosed)

		require.NoError(t, c.add(1, "eggs", distributeddata.Majority))
		m := c.Restart(c.Member(0))
		c.ready(m)
		v, err := cart.Get(context.Background(), c.dd[m], distributeddata.Majority)
		require.NoError(t, err)
		require.Equal(t, []string{"eggs", "milk"}, slices.Collect(v.All()))
	})
}

// embedding is a type of an application that embeds a request by mistake.
type embedding struct {
	*distributeddata.Update[crdt.GCounter]
}

// Messages that are nil, unknown or of durable keys at a member without them change nothing.
func TestMessages_StrangeOnesNeverPanic(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		require.NoError(t, c.add(0, "milk", distributeddata.All))
		was := c.at(0).Status()
		member := c.Member(1)
		for i := range 128 {
			m := wire.Manifest(i % 64)
			if i >= 64 {
				m = m.OfDurable()
			}
			for _, keys := range []uint64{0, 1} {
				for _, payload := range [][]byte{nil, {1}, {0xff, 0xff}} {
					c.Member(0).System.Root.Send(c.at(0).PID(), wire.Seal(wire.Header{
						Member: member.ID, From: uint64(c.at(1).Status().Replica),
						To: uint64(was.Replica), Keys: keys}, m, payload))
				}
			}
		}
		for _, m := range []any{(*pb.Envelope)(nil), &pb.Envelope{},
			(*distributeddata.Update[crdt.GCounter])(nil), distributeddata.Get[crdt.GCounter]{},
			embedding{}, &embedding{}, "text", 7, struct{}{}, []byte(nil),
			&distributeddata.Update[crdt.GCounter]{}, &distributeddata.Subscribe[crdt.GCounter]{},
			&distributeddata.Unsubscribe[crdt.GCounter]{},
			(*distributeddata.Get[crdt.GCounter])(nil), &distributeddata.Transaction{}} {
			c.Member(0).System.Root.Send(c.at(0).PID(), m)
		}
		time.Sleep(5 * time.Second)
		s := c.at(0).Status()
		require.Zero(t, s.Panics)
		require.Equal(t, was.Replica, s.Replica)
		require.Equal(t, []string{"milk"}, c.elements(0))
		require.NoError(t, c.add(0, "eggs", distributeddata.All))
	})
}

// A panic while an effect is carried out is counted and makes the member unhealthy; the replica
// does not restart, and what the effect was for is not lost.
func TestResume_APanicInAnEffectIsLoud(t *testing.T) {
	var on atomic.Pointer[string] // the effect that panics
	var hits atomic.Int64
	plant := func(effect any) {
		if p := on.Load(); p != nil && *p == fmt.Sprintf("%T", effect) &&
			on.CompareAndSwap(p, nil) {
			hits.Add(1)
			panic("planted")
		}
	}
	vary := func(m *simnet.Member, _ *distributeddata.Config) {
		if m.Index == 0 {
			shell.Plant(m.System, plant)
		}
	}
	runVaried(t, 3, distributeddata.Config{MinMembers: 3}, vary, func(c *cluster) {
		h := &hearer{}
		system := c.Member(0).System
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return h }))
		clicks.Subscribe(c.at(0), pid, nil)
		was, acked, made := c.at(0).Status().Replica, uint64(0), uint64(0)
		for round := range 30 {
			for _, effect := range []string{"Send", "Done", "Changed"} {
				before := hits.Load()
				on.Store(new("core." + effect))
				for i := range 3 {
					made++
					if err := click(context.Background(), c.at(i),
						distributeddata.Majority); err == nil {
						acked++
					} else {
						require.ErrorIs(t, err, distributeddata.ErrUnknown)
					}
				}
				require.Equal(t, before+1, hits.Load(), "round %d: %s", round, effect)
				require.ErrorContains(t, lifecycle.Of(system).Check(), "a bug of this library: replicator")
				time.Sleep(5 * time.Second)
				v, err := clicks.Get(context.Background(), c.at(0), distributeddata.Majority)
				require.NoError(t, err)
				require.GreaterOrEqual(t, v.Value(), acked)
				require.LessOrEqual(t, v.Value(), made)
				synctest.Wait()
				require.Equal(t, v.Value(), h.last, "round %d: %s: the subscriber", round, effect)
			}
		}
		s := c.at(0).Status()
		require.EqualValues(t, 90, s.Panics)
		require.Zero(t, s.Faults)
		require.Equal(t, was, s.Replica, "it never starts empty")
		require.GreaterOrEqual(t, acked+30, made)
		time.Sleep(time.Minute)
		require.NoError(t, lifecycle.Of(system).Check())
		system.Root.Stop(pid)
	})
}
