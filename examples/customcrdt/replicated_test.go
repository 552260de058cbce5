package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/testkit"
)

// These tests use the user-defined types on three members, in virtual time.

// group is a replicator at each member of a virtual cluster.
type group struct {
	c  *testkit.Cluster
	at []*distributeddata.Replicator
}

// replicated runs test with a cluster of three members whose replicators are ready.
func replicated(t *testing.T, test func(t *testing.T, g *group)) {
	t.Helper()
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		g := &group{c: c}
		for _, m := range c.Members() {
			r, err := distributeddata.New(m.System, distributeddata.Config{MinMembers: 3})
			require.NoError(t, err)
			g.at = append(g.at, r)
		}
		defer g.close()
		for _, r := range g.at {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			require.NoError(t, r.Ready(ctx))
			cancel()
		}
		test(t, g)
	})
}

// close stops the replicators. The last one cannot hand over its data, and returns an error.
func (g *group) close() {
	for _, r := range g.at {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_ = r.Close(ctx)
		cancel()
	}
}

func change[T crdt.Value[T]](t *testing.T, r *distributeddata.Replicator, k distributeddata.Key[T],
	f func(w *crdt.Writer, v *T)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := k.Update(ctx, r, func(w *crdt.Writer, v *T) error { f(w, v); return nil },
		distributeddata.Local)
	require.NoError(t, err)
}

// shows waits until every replicator shows the text.
func shows[T crdt.Value[T]](t *testing.T, g *group, k distributeddata.Key[T], want string) {
	t.Helper()
	for i, r := range g.at {
		testkit.Eventually(t, 30*time.Second, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			v, err := k.Get(ctx, r)
			if err != nil && !errors.Is(err, distributeddata.ErrNotFound) {
				return err
			}
			if got := fmt.Sprint(v); got != want {
				return fmt.Errorf("member %d shows %s, wanted %s", i, got, want)
			}
			return nil
		})
	}
}

// Both sides of a partition change the list. Afterwards the remove has won on all members.
func TestGuests_Replicated(t *testing.T) {
	replicated(t, func(t *testing.T, g *group) {
		key := distributeddata.NewKey("guests", guests{})
		change(t, g.at[0], key, func(w *crdt.Writer, v *guests) { v.Add(w, "ann", "ben") })
		shows(t, g, key, "[ann ben]")
		g.c.Partition([]int{0, 1}, []int{2})
		change(t, g.at[0], key, func(w *crdt.Writer, v *guests) { v.Add(w, "ben", "cyd") })
		change(t, g.at[2], key, func(w *crdt.Writer, v *guests) { v.Remove(w, "ben") })
		g.c.Heal()
		shows(t, g, key, "[ann cyd]")
	})
}

// Votes on both sides of a partition all count.
func TestSurvey_Replicated(t *testing.T) {
	replicated(t, func(t *testing.T, g *group) {
		key := distributeddata.NewKey("survey", survey{})
		vote := func(answer string) func(w *crdt.Writer, s *survey) {
			return func(w *crdt.Writer, s *survey) {
				s.Update(w, "lunch", func(q *question) { q.Vote(w, answer) })
			}
		}
		change(t, g.at[0], key, vote("soup"))
		shows(t, g, key, "{lunch:empty {soup:1}}")
		g.c.Partition([]int{0}, []int{1, 2})
		change(t, g.at[0], key, vote("soup"))
		change(t, g.at[1], key, vote("pie"))
		change(t, g.at[2], key, func(w *crdt.Writer, s *survey) {
			s.Update(w, "lunch", func(q *question) { q.Headline.Set(w, "Lunch?") })
		})
		g.c.Heal()
		shows(t, g, key, "{lunch:Lunch? {pie:1 soup:2}}")
	})
}

// A record needs no methods, and its fields merge independently; its elements may be PIDs.
func TestRecordOfPIDs_Replicated(t *testing.T) {
	type room struct {
		Title   crdt.LWWRegister[string]
		Members crdt.ORSet[*actor.PID]
	}
	empty := crdt.Record[room]{V: room{Members: crdt.NewORSet(crdt.Proto[*actor.PID]())}}
	replicated(t, func(t *testing.T, g *group) {
		key := distributeddata.NewKey("room", empty)
		ann, ben := actor.NewPID("host1:1", "ann"), actor.NewPID("host2:1", "ben")
		change(t, g.at[0], key, func(w *crdt.Writer, r *crdt.Record[room]) {
			r.V.Members.Add(w, ann, ben)
		})
		shows(t, g, key, fmt.Sprintf("{Title:empty Members:{%v %v}}", ann, ben))
		g.c.Partition([]int{0}, []int{1, 2})
		change(t, g.at[0], key, func(w *crdt.Writer, r *crdt.Record[room]) {
			r.V.Members.Remove(w, actor.NewPID("host1:1", "ann"))
		})
		change(t, g.at[1], key, func(w *crdt.Writer, r *crdt.Record[room]) {
			r.V.Title.Set(w, "lobby")
		})
		g.c.Heal()
		shows(t, g, key, fmt.Sprintf("{Title:lobby Members:{%v}}", ben))
	})
}

func TestPIDs_AreElements(t *testing.T) {
	pids := crdt.NewORSet(crdt.Proto[*actor.PID]())
	w := crdt.NewReplica(1).Writer()
	pids.Add(w, actor.NewPID("host:1", "a"), actor.NewPID("host:1", "a"),
		actor.NewPID("host:1", "b"))
	require.NoError(t, w.Err())
	require.Equal(t, 2, pids.Len())
	require.True(t, pids.Contains(actor.NewPID("host:1", "b")))
	b, err := pids.AppendBinary(nil)
	require.NoError(t, err)
	got, err := pids.Decode(b)
	require.NoError(t, err)
	for pid := range got.All() {
		require.Equal(t, "host:1", pid.Address)
	}
	pids.Add(w, nil)
	require.ErrorIs(t, w.Err(), crdt.ErrElement)
	w = crdt.NewReplica(2).Writer()
	pids.Add(w, actor.NewPID("host:1", "\xff")) // not UTF-8, which protobuf rejects
	require.ErrorIs(t, w.Err(), crdt.ErrElement)
	require.Equal(t, 2, pids.Len())
}
