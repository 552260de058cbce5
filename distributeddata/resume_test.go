package distributeddata_test

import (
	"context"
	"fmt"
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
)

// fuse makes a step of the first member's replicator panic, after a number of places.
type fuse struct {
	left  atomic.Int64
	every atomic.Bool // and then at each place
	reach int
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
	opts ...distributeddata.Option) error {
	_, err := clicks.Update(ctx, dd, func(w *crdt.Writer, v *crdt.GCounter) error {
		v.Add(w, 1)
		return nil
	}, opts...)
	return err
}

// A panic of our own code, wherever it hits: the replica continues under its id, ready, with its
// subscribers; nothing acknowledged is lost, and every call is answered in time.
func TestResume_WhateverAPanicInterrupts(t *testing.T) {
	var f fuse
	runWith(t, 3, distributeddata.Config{MinMembers: 3}, f.setup, func(c *cluster) {
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
				Key: clicks, Modify: func(w *crdt.Writer, v *crdt.GCounter) error {
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
		require.LessOrEqual(t, unknown, 40, "a panic interrupts one call at most")
		system.Root.Stop(pid)
	})
}

// A replica that panics repeatedly, whatever is tried, starts empty under a new id, and is
// refilled: the member is not lost.
func TestResume_GivesUpWhatPanicsForEver(t *testing.T) {
	var f fuse
	runWith(t, 3, distributeddata.Config{MinMembers: 3}, f.setup, func(c *cluster) {
		require.NoError(t, c.add(1, "milk", distributeddata.All))
		was := c.at(0).Status()
		f.every.Store(true)
		require.ErrorIs(t, c.add(0, "bread"), distributeddata.ErrUnknown)
		for c.at(0).Status().Replica == was.Replica {
			time.Sleep(time.Second)
		}
		f.every.Store(false)
		time.Sleep(10 * time.Second)
		s := c.at(0).Status()
		require.NotEqual(t, was.Replica, s.Replica)
		require.True(t, s.Ready, s.NotReady)
		require.LessOrEqual(t, s.Panics, uint64(10))
		require.NoError(t, c.add(0, "eggs", distributeddata.All))
		require.Equal(t, []string{"eggs", "milk"}, c.elements(0))
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
	runVaried(t, 3, distributeddata.Config{MinMembers: 3}, vary, nil, func(c *cluster) {
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
