package distributeddata_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
)

// without disables expiry at the members for which at is true.
func without(at func(i int) bool) func(*simnet.Member, *distributeddata.Config) {
	return func(m *simnet.Member, cfg *distributeddata.Config) {
		if at(m.Index) {
			cfg.Expiry = nil
		}
	}
}

func first(i int) bool { return i == 0 }

// split separates the network into two parts, which continue without each other.
func (c *cluster) split(a, b []int) (heal func()) {
	one, other := c.members(a), c.members(b)
	c.Net.Partition(addresses(c, a...), addresses(c, b...))
	c.Unlist(one, other)
	c.Unlist(other, one)
	return func() {
		c.Net.Heal()
		c.List(one, other)
		c.List(other, one)
	}
}

func (c *cluster) members(numbers []int) (all []*simnet.Member) {
	for _, i := range numbers {
		all = append(all, c.Member(i))
	}
	return all
}

// R24: an update concurrent with the deletion survives on its own: the earlier content does not
// come back with it.
func TestExpiry_AConcurrentUpdateSurvivesAlone(t *testing.T) {
	run(t, 5, forgetful, func(c *cluster) {
		a := xs.Key("a")
		c.put(0, a, "old", distributeddata.All)
		time.Sleep(forgetAfter)
		heal := c.split([]int{0, 1}, []int{2, 3, 4})
		time.Sleep(gone - forgetAfter)
		require.Empty(t, c.there(3, a))
		require.Equal(t, []string{"old"}, c.there(0, a), "a minority deletes nothing")
		c.put(0, a, "new", local)
		require.Equal(t, []string{"new", "old"}, c.there(0, a))
		heal()
		time.Sleep(5 * time.Second)
		c.everywhere(a, "new")
		time.Sleep(forgetAfter)
		c.everywhere(a, "new")
		time.Sleep(gone)
		c.everywhere(a)
	})
}

// R24: a concurrent read does not keep the entry, and leaves nothing visible.
func TestExpiry_AConcurrentReadKeepsNothing(t *testing.T) {
	run(t, 5, forgetful, func(c *cluster) {
		a := xs.Key("a")
		c.put(0, a, "old", distributeddata.All)
		time.Sleep(forgetAfter)
		heal := c.split([]int{0, 1}, []int{2, 3, 4})
		_, err := a.Get(context.Background(), c.at(0))
		require.NoError(t, err)
		time.Sleep(gone - forgetAfter)
		told, stop := c.told(3, a, xs)
		defer stop()
		heal()
		time.Sleep(5 * time.Second)
		c.everywhere(a)
		for i := range 5 {
			require.Empty(t, slices.Collect(c.at(i).Keys()))
			_, err := a.Get(context.Background(), c.at(i), distributeddata.Majority)
			require.ErrorIs(t, err, distributeddata.ErrNotFound)
			require.Equal(t, 1, c.at(i).Status().Keys, "the stamp of the read")
		}
		time.Sleep(gone)
		for i := range 5 {
			require.Zero(t, c.at(i).Status().Keys)
		}
		require.Empty(t, told("actor"))
		require.Empty(t, told("loop"))
	})
}

// Half of the members, which cannot know what the others use, delete nothing; nor does a member
// that is not ready.
func TestExpiry_HalfOfTheMembersDeleteNothing(t *testing.T) {
	run(t, 4, forgetful, func(c *cluster) {
		a := xs.Key("a")
		c.put(0, a, "1", distributeddata.All)
		heal := c.split([]int{0, 1}, []int{2, 3})
		for range 40 {
			time.Sleep(10 * time.Second)
			_, err := a.Get(context.Background(), c.at(3))
			require.NoError(t, err)
		}
		heal()
		time.Sleep(5 * time.Second)
		c.everywhere(a, "1")
		time.Sleep(gone)
		c.everywhere(a)
	})
}

// The member whose turn it is has crashed, or does not delete: the next one does.
func TestExpiry_TheNextMemberTakesOver(t *testing.T) {
	runVaried(t, 5, forgetful, without(func(i int) bool { return i < 3 }), func(c *cluster) {
		for k := range strings.FieldsSeq("a b c d e f g h i j") {
			c.put(0, xs.Key(k), "1", distributeddata.All)
			c.put(3, xs.Key(k), "1", distributeddata.All) // stamps it
		}
		const turn = 14 * time.Second
		time.Sleep(gone + 4*turn)
		for i := range 5 {
			require.Empty(t, slices.Collect(c.at(i).Keys()))
		}
	})
}

// What a program without expiry has written counts as used when a member with it first sees it.
func TestExpiry_EntriesWithoutAStampCountAsUsedWhenSeen(t *testing.T) {
	runVaried(t, 3, forgetful, without(first), func(c *cluster) {
		a := xs.Key("a")
		c.put(0, a, "1", distributeddata.All)
		time.Sleep(forgetAfter)
		c.everywhere(a, "1")
		time.Sleep(gone + 14*time.Second)
		c.everywhere(a)
	})
	run(t, 3, distributeddata.Config{}, func(c *cluster) { // it gets a time to live by a restart
		a := xs.Key("a")
		c.put(0, a, "1", distributeddata.All)
		time.Sleep(time.Hour)
		c.cfg.Expiry = forgetful.Expiry
		for i := range 3 {
			c.ready(c.Restart(c.Member(i)))
		}
		time.Sleep(forgetAfter - 10*time.Second)
		for _, m := range c.Live() {
			v, err := a.Of(c.dd[m].Snapshot())
			require.NoError(t, err)
			require.Equal(t, 1, v.Len())
		}
		time.Sleep(gone + 3*14*time.Second)
		for _, m := range c.Live() {
			_, err := a.Of(c.dd[m].Snapshot())
			require.ErrorIs(t, err, distributeddata.ErrNotFound)
		}
	})
}

// Programs with different times: the shortest counts, also while the entry is used where it is
// longer.
func TestExpiry_OfTwoTimesTheShorterCounts(t *testing.T) {
	runVaried(t, 3, forgetful, func(m *simnet.Member, cfg *distributeddata.Config) {
		if m.Index == 0 {
			cfg.Expiry = map[string]time.Duration{"x-*": 24 * time.Hour}
		}
	}, func(c *cluster) {
		a := xs.Key("a")
		c.put(0, a, "1", distributeddata.All)
		time.Sleep(time.Second)
		require.Equal(t, []string{c.Member(1).Address, c.Member(2).Address},
			c.at(0).Status().OtherExpiry)
		require.Equal(t, []string{c.Member(0).Address}, c.at(1).Status().OtherExpiry)
		for range int((gone + 14*time.Second) / time.Second) {
			time.Sleep(time.Second)
			_, _ = a.Get(context.Background(), c.at(0))
		}
		c.everywhere(a)
	})
}

// A member that restarts with the times of the others is no longer named, and one that is
// configured as the others never is.
func TestExpiry_ADifferentListIsNamed(t *testing.T) {
	starts := 0
	runVaried(t, 3, forgetful, func(_ *simnet.Member, cfg *distributeddata.Config) {
		if starts++; starts == 3 {
			cfg.Expiry = nil
		}
	}, func(c *cluster) {
		time.Sleep(5 * time.Second)
		odd := c.Member(2)
		for _, m := range c.Live() {
			if m != odd {
				require.Equal(t, []string{odd.Address}, c.dd[m].Status().OtherExpiry)
			}
		}
		require.Len(t, c.dd[odd].Status().OtherExpiry, 2)
		require.Empty(t, c.at(0).Status().OtherDurable)
		c.ready(c.Restart(odd))
		time.Sleep(5 * time.Second)
		for _, m := range c.Live() {
			require.Empty(t, c.dd[m].Status().OtherExpiry)
		}
	})
}

// Durable entries are deleted from the disk, and their stamps are on it. A member that comes back
// after days neither deletes what the others use nor keeps what they have deleted. A cluster that
// comes back continues where it was.
func TestExpiry_OfDurableEntries(t *testing.T) {
	cfg := forgetful
	cfg.Durable = []string{"x-*"}
	run(t, 3, cfg, func(c *cluster) {
		a, used := xs.Key("a"), []distributeddata.Key[items]{}
		c.put(0, a, "1", distributeddata.All)
		for i := range 10 { // each member is the first in turn for some
			used = append(used, xs.Key(fmt.Sprint("b", i)))
			c.put(1, used[i], "1", distributeddata.All)
			c.put(1, used[i], "2", distributeddata.All)
		}
		c.Crash(c.Member(2))
		c.disks[c.Member(2).Address].Crash()
		for range 60 {
			time.Sleep(10 * time.Second)
			for _, b := range used {
				_, err := b.Get(context.Background(), c.at(0))
				require.NoError(t, err)
			}
		}
		require.Empty(t, c.there(0, a))
		c.Net.Partition(addresses(c, 0, 1), addresses(c, 2))
		m := c.Restart(c.Member(2)) // lists the others, but cannot reach them
		time.Sleep(time.Minute)
		c.Net.Heal()
		c.ready(m)
		time.Sleep(10 * time.Second)
		for _, m := range c.Live() {
			for _, b := range used {
				v, err := b.Of(c.dd[m].Snapshot())
				require.NoError(t, err)
				require.Equal(t, []string{"1", "2"}, slices.Collect(v.All()))
			}
			require.NotContains(t, c.onDisk(m), "x-a")
			require.Contains(t, c.onDisk(m), "x-b")
		}
		time.Sleep(forgetAfter / 2)
		c.restart()
		// since the use before the restart
		time.Sleep(forgetAfter/2 + forgetAfter/4 + 20*time.Second)
		for _, m := range c.Live() {
			require.Empty(t, slices.Collect(c.dd[m].Keys()))
			require.NotContains(t, c.onDisk(m), "x-b")
		}
	})
}

// onDisk returns the keys of the rows on a member's disk.
func (c *cluster) onDisk(m *simnet.Member) string {
	c.t.Helper()
	var keys []string
	for row, err := range c.stores[m.Address].Load(context.Background()) {
		require.NoError(c.t, err)
		keys = append(keys, row.Key)
	}
	return strings.Join(keys, "\n")
}

// A member that hears the others, so that it misses none, but has not been refilled since its start
// does not know what they have used, and deletes nothing.
func TestExpiry_AMemberThatIsNotReadyDeletesNothing(t *testing.T) {
	cfg := forgetful
	cfg.Durable = []string{"x-*"}
	run(t, 3, cfg, func(c *cluster) {
		var used []distributeddata.Key[items]
		for i := range 10 { // each member is the first in turn for some
			used = append(used, xs.Key(fmt.Sprint("b", i)))
			c.put(1, used[i], "1", distributeddata.All)
		}
		use := func(d time.Duration) {
			for range d / (10 * time.Second) {
				time.Sleep(10 * time.Second)
				for _, b := range used {
					_, err := b.Get(context.Background(), c.at(0))
					require.NoError(t, err)
				}
			}
		}
		c.Crash(c.Member(2))
		c.disks[c.Member(2).Address].Crash()
		use(10 * time.Minute)
		for i := range 2 { // its requests are lost
			c.Net.Link(c.Member(2).Address, c.Member(i).Address).Set(simnet.Faults{Cut: true})
		}
		m := c.Restart(c.Member(2))
		use(3 * time.Minute)
		status := c.dd[m].Status()
		require.False(t, status.Ready)
		require.Empty(t, status.Missing)
		require.Zero(t, status.Expired)
		c.Net.Heal()
		c.ready(m)
		time.Sleep(10 * time.Second)
		for _, m := range c.Live() {
			for _, b := range used {
				v, err := b.Of(c.dd[m].Snapshot())
				require.NoError(t, err)
				require.Equal(t, []string{"1"}, slices.Collect(v.All()))
			}
		}
	})
}

// R24: an update that is made, but not yet visible, when the entry is deleted here keeps the entry
// whole: the deletion looks at the entry again.
func TestExpiry_AnUpdateThatIsNotVisibleYetKeepsTheEntry(t *testing.T) {
	run(t, 1, forgetful, func(c *cluster) {
		a := xs.Key("a")
		time.Sleep(700 * time.Millisecond) // apart from heartbeats
		c.put(0, a, "old", local)
		const expires = forgetAfter + forgetAfter/4 + 5*time.Second // with the skew
		time.Sleep(expires - 10*time.Millisecond)
		require.Equal(t, []string{"old"}, c.there(0, a))
		send := func(m any) { c.Member(0).System.Root.Send(c.at(0).PID(), m) }
		busy := xs.Key("busy") // while it is updated, the update of a and then the expiry wait
		send(busy.UpdateMessage(func(w *crdt.Writer, v *items) error {
			time.Sleep(20 * time.Millisecond)
			v.Add(w, "x")
			return nil
		}, local))
		time.Sleep(5 * time.Millisecond)
		send(a.UpdateMessage(adding("new"), local))
		time.Sleep(20 * time.Second)
		require.Equal(t, []string{"new", "old"}, c.there(0, a))
		require.Zero(t, c.at(0).Status().Expired)
		time.Sleep(gone)
		require.Empty(t, c.there(0, a))
		require.EqualValues(t, 2, c.at(0).Status().Expired)
	})
}

// A permanent deletion stays.
func TestExpiry_WhatWasDeletedForGoodStaysSo(t *testing.T) {
	run(t, 3, forgetful, func(c *cluster) {
		a := xs.Key("a")
		c.put(0, a, "1", distributeddata.All)
		require.NoError(t, a.Delete(context.Background(), c.at(0), distributeddata.All,
			distributeddata.Permanently))
		time.Sleep(time.Hour)
		for i := range 3 {
			_, err := a.Update(context.Background(), c.at(i), func(*crdt.Writer, *items) error {
				return nil
			}, local)
			require.ErrorIs(t, err, distributeddata.ErrDeleted)
		}
	})
}
