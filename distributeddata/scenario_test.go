package distributeddata_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// Bugs that users of other replicated-data modules have encountered, as stories that must end well
// here. Each names where it was reported or seen.

var visits = distributeddata.NewKey("visits", crdt.PNCounter{})

func (c *cluster) count(i int, n int64, at ...distributeddata.Consistency) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_, err := visits.Update(ctx, c.at(i), func(w *crdt.Writer, v *crdt.PNCounter) error {
		v.Add(w, n)
		return nil
	}, stated(at))
	return err
}

func (c *cluster) total(i int, at ...distributeddata.Consistency) int64 {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	v, err := visits.Get(ctx, c.at(i), at...)
	require.NoError(c.t, err)
	return v.Value()
}

func (c *cluster) removeFrom(i int, elems ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_, err := cart.Update(ctx, c.at(i), func(w *crdt.Writer, v *items) error {
		v.Remove(w, elems...)
		return nil
	}, distributeddata.Majority)
	return err
}

// manifests counts the messages between members by kind, and records the largest size.
type manifests struct {
	mu      sync.Mutex
	seen    map[wire.Manifest]int
	largest int
}

func (c *cluster) counts() *manifests {
	m := &manifests{seen: map[wire.Manifest]int{}}
	c.Net.Observe(func(p simnet.Packet) {
		if e, ok := p.Message.(*pb.Envelope); ok {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.seen[wire.Manifest(e.Manifest).Plain()]++
			m.largest = max(m.largest, p.Size)
		}
	})
	return m
}

func (m *manifests) max() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.largest
}

func (m *manifests) of(kind wire.Manifest) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[kind]
}

// GoAkt 94c8740c: 20 adds without any fault left 20, 1 and 1 elements, since a delta claimed
// everything that its writer had done before.
func TestScenario_EveryAddArrivesWithoutAnyFault(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		for i := range 20 {
			require.NoError(t, c.add(0, fmt.Sprint("item ", i)))
		}
		time.Sleep(time.Second)
		for i := range 3 {
			require.Len(t, c.elements(i), 20)
			require.Len(t, c.elements(i, distributeddata.Majority), 20)
		}
	})
}

// GoAkt 94c8740c, and akka 22890: the delta of a remove removed elements that it did not name.
func TestScenario_RemoveTakesOnlyWhatItNames(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		for _, e := range []string{"x", "y", "z"} {
			require.NoError(t, c.add(0, e, distributeddata.All))
		}
		require.NoError(t, c.add(1, "elsewhere", distributeddata.All))
		require.NoError(t, c.removeFrom(0, "z"))
		time.Sleep(time.Minute) // it showed after minutes
		for i := range 3 {
			require.Equal(t, []string{"elsewhere", "x", "y"}, c.elements(i))
		}
	})
}

// GoAkt 94c8740c: two members that had made equally many changes considered their states equal,
// forever.
func TestScenario_EquallyManyChangesAreNotEqualStates(t *testing.T) {
	run(t, 3, distributeddata.Config{}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1), addresses(c, 2))
		for range 3 {
			require.NoError(t, c.count(0, 1))
			require.NoError(t, c.count(1, 1))
		}
		c.Net.Heal()
		time.Sleep(4 * time.Second)
		for i := range 3 {
			require.EqualValues(t, 6, c.total(i))
		}
	})
}

// GoAkt 94c8740c: a member that came back on its address counted from below what others remembered
// of it, and its acknowledged increments were lost. akka.net 4200: counters of restarted members
// ended at 42 instead of 9.
func TestScenario_CountersOfRestartedMembersAreExact(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		want := int64(0)
		members := []int{0, 1, 2}
		for round := range 4 {
			for _, i := range members {
				require.NoError(t, c.count(i, int64(round+1), distributeddata.Majority))
				want += int64(round + 1)
			}
			m := c.Restart(c.Member(members[round%3]))
			members[round%3] = m.Index
			c.ready(m)
			require.Equal(t, want, c.total(m.Index, distributeddata.Majority))
		}
		time.Sleep(5 * time.Second)
		for _, i := range members {
			require.Equal(t, want, c.total(i))
		}
	})
}

// akka and pekko: after a replicator was restarted, peers acknowledged its writes as already
// handled, without applying them, since their memory of its sequence numbers was ahead.
func TestScenario_AcknowledgedAfterARestartMeansApplied(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		for i := range 50 {
			require.NoError(t, c.add(1, fmt.Sprint("before ", i), distributeddata.Majority))
		}
		m := c.Restart(c.Member(1))
		c.ready(m)
		require.NoError(t, c.add(m.Index, "after", distributeddata.All))
		require.Contains(t, c.elements(0), "after")
		require.Contains(t, c.elements(2), "after")
	})
}

// akka and pekko: while a removed member was pruned, deltas of its element's new owner wiped the
// element everywhere (akka.net 8219; possibly akka 30002, where registrations vanished while
// members left).
// Seen in akka 30002, akka.net 8219 to 8221.
func TestScenario_ElementsOfMembersThatLeftStay(t *testing.T) {
	run(t, 5, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		want := []string{}
		for i := range 5 {
			e := fmt.Sprint("by member ", i)
			require.NoError(t, c.add(i, e, distributeddata.All))
			want = append(want, e)
		}
		for _, gone := range []int{4, 2, 3} {
			m := c.Member(gone)
			require.NoError(t, c.dd[m].Close(context.Background()))
			c.Leave(m)
			for k := range 20 { // the others continue meanwhile
				e := fmt.Sprintf("while %d left: %02d", gone, k)
				require.NoError(t, c.add(k%2, e))
				want = append(want, e)
				time.Sleep(50 * time.Millisecond)
			}
		}
		time.Sleep(10 * time.Minute) // longer than any pruning margin
		slices.Sort(want)
		require.Equal(t, want, c.elements(0))
		require.Equal(t, want, c.elements(1))
	})
}

// akka and pekko: one lost delta stopped all later ones of its key, until a random full-state
// gossip.
func TestScenario_OneLostChangeDoesNotStopTheNext(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		lost := c.Net.Link(c.Member(0).Address, c.Member(1).Address).Next(
			func(p simnet.Packet) bool {
				e, ok := p.Message.(*pb.Envelope)
				return ok && wire.Manifest(e.Manifest).Plain() == wire.ReplicatorPush
			}, simnet.Faults{Loss: 1})
		require.NoError(t, c.add(0, "lost"))
		time.Sleep(50 * time.Millisecond)
		require.True(t, lost())
		require.NoError(t, c.add(0, "next"))
		time.Sleep(3 * time.Second) // two heartbeats
		require.Equal(t, []string{"lost", "next"}, c.elements(1))
	})
}

// akka 22188, 22331, 22378, 22648: reordered deltas made holes, and a removal that arrived before
// its add was forgotten.
func TestScenario_ChangesThatOvertakeEachOtherMakeNoHoles(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		c.Net.SetAll(simnet.Faults{Jitter: 2 * time.Second, Reorder: true, Duplicate: 0.3})
		for i := range 60 {
			require.NoError(t, c.add(i%3, fmt.Sprintf("item %02d", i)))
			if i%4 == 3 {
				require.NoError(t, func() error { // of its own element, so that it is visible
					_, err := cart.Update(context.Background(), c.at(i%3),
						func(w *crdt.Writer, v *items) error {
							v.Remove(w, fmt.Sprintf("item %02d", i))
							return nil
						}, local)
					return err
				}())
			}
			time.Sleep(20 * time.Millisecond)
		}
		c.Net.Heal()
		time.Sleep(10 * time.Second)
		require.Len(t, c.elements(0), 45)
		require.Equal(t, c.elements(0), c.elements(1))
		require.Equal(t, c.elements(0), c.elements(2))
	})
}

// akka 22606: a delta that was not reset was sent again and again. A change is sent once, and an
// update that changes nothing (akka 22655) is not sent.
func TestScenario_AChangeCrossesOnceAndNoChangeNever(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		m := c.counts()
		require.NoError(t, c.add(0, "milk", distributeddata.Majority))
		time.Sleep(time.Minute)
		require.Equal(t, 2, m.of(wire.ReplicatorPush), "to each of two others")
		require.NoError(t, c.removeFrom(0, "not there"))
		time.Sleep(time.Minute)
		require.Equal(t, 2, m.of(wire.ReplicatorPush))
	})
}

// akka.net 3759, 4198, 4302, 4367, 4400, 4806: a delta of another type stopped the replication of
// all keys that were sent with it.
func TestScenario_AKeyOfAnotherTypeDoesNotStopTheRest(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		numbers := distributeddata.NewKey("cart", crdt.PNCounter{}) // the same key
		c.Net.Partition(addresses(c, 0), addresses(c, 1))
		require.NoError(t, c.add(0, "milk"))
		_, err := numbers.Update(context.Background(), c.at(1),
			func(w *crdt.Writer, v *crdt.PNCounter) error {
				v.Add(w, 1)
				return nil
			}, local)
		require.NoError(t, err)
		require.NoError(t, c.count(1, 7))
		c.Net.Heal()
		time.Sleep(5 * time.Second)
		require.EqualValues(t, 7, c.total(0), "another key is well")
		for i := range 2 { // both have both, and each type still shows its own
			_, err := cart.Get(context.Background(), c.at(i))
			_, err2 := numbers.Get(context.Background(), c.at(i))
			if err != nil {
				require.ErrorIs(t, err, distributeddata.ErrType)
			}
			if err2 != nil {
				require.ErrorIs(t, err2, distributeddata.ErrType)
			}
		}
		require.NoError(t, c.count(0, 1, distributeddata.All), "and replication goes on")
	})
}

// akka 26283: an unmergeable value stopped the replicator. Garbage from a peer is dropped.
// Seen in akka 26283, akka.net 3759, 4184, 4302, 4400, 7910.
func TestScenario_GarbageOfAPeerStopsNothing(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		require.NoError(t, c.add(0, "milk", distributeddata.All))
		from := c.Member(1)
		for kind := wire.Manifest(10); kind < 30; kind++ {
			for _, payload := range [][]byte{nil, {0xff}, bytes.Repeat([]byte{0x0a}, 1000)} {
				from.System.Root.Send(c.at(0).PID(),
					&pb.Envelope{Version: 1, Manifest: uint32(kind), Payload: payload})
			}
		}
		time.Sleep(time.Second)
		require.NoError(t, c.add(0, "bread", distributeddata.All))
		require.Equal(t, []string{"bread", "milk"}, c.elements(1))
	})
}

// akka 27428: the content of a removed map key came back when the key was put again.
func TestScenario_APutAfterARemoveBringsNothingBack(t *testing.T) {
	baskets := distributeddata.NewKey("baskets", crdt.ORMap[string, items]{})
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		put := func(i int, e string) {
			_, err := baskets.Update(context.Background(), c.at(i),
				func(w *crdt.Writer, m *crdt.ORMap[string, items]) error {
					m.Update(w, "alice", func(v *items) { v.Add(w, e) })
					return nil
				}, distributeddata.All)
			require.NoError(t, err)
		}
		put(0, "old")
		_, err := baskets.Update(context.Background(), c.at(1),
			func(w *crdt.Writer, m *crdt.ORMap[string, items]) error {
				m.Remove(w, "alice")
				return nil
			}, distributeddata.All)
		require.NoError(t, err)
		put(2, "new")
		time.Sleep(5 * time.Second)
		for i := range 3 {
			m, err := baskets.Get(context.Background(), c.at(i))
			require.NoError(t, err)
			v, ok := m.Get("alice")
			require.True(t, ok)
			require.Equal(t, []string{"new"}, slices.Collect(v.All()))
		}
	})
}

// akka.net 4843: items went missing from a map under load.
func TestScenario_NothingIsMissingFromAMapUnderLoad(t *testing.T) {
	stock := distributeddata.NewKey("stock", crdt.ORMap[string, items]{})
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		c.Net.SetAll(simnet.Faults{Loss: 0.1, Jitter: 100 * time.Millisecond, Reorder: true})
		const perMember = 100
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				for k := range perMember {
					_, err := stock.Update(context.Background(), c.at(i),
						func(w *crdt.Writer, m *crdt.ORMap[string, items]) error {
							m.Update(w, fmt.Sprint("shelf ", k%10), func(v *items) {
								v.Add(w, fmt.Sprintf("%d/%d", i, k))
							})
							return nil
						}, local)
					if err != nil {
						t.Errorf("member %d: %v", i, err)
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		wg.Wait()
		c.Net.Heal()
		time.Sleep(10 * time.Second)
		for i := range 3 {
			m, err := stock.Get(context.Background(), c.at(i))
			require.NoError(t, err)
			n := 0
			for _, v := range m.All() {
				n += v.Len()
			}
			require.Equal(t, 3*perMember, n, "at %d", i)
		}
	})
}

// akka 25529: a last-writer-wins map became inconsistent, and ran out of memory, under puts and
// removes of the same keys. akka 21249: so did the store, under keys that were created and deleted.
// Seen in akka 21249, 22974, 25529, GoAkt 94c8740c.
func TestScenario_ChurnLeavesNothingBehind(t *testing.T) {
	prices := distributeddata.NewKey("prices", crdt.LWWMap[string, int]{})
	run(t, 3, distributeddata.Config{MinMembers: 3, LogBytes: 1 << 16}, func(c *cluster) {
		for k := range 600 {
			name := fmt.Sprint("p", k%7)
			_, err := prices.Update(context.Background(), c.at(k%3),
				func(w *crdt.Writer, m *crdt.LWWMap[string, int]) error {
					if k%2 == 0 {
						m.Set(w, name, k)
					} else {
						m.Remove(w, fmt.Sprint("p", (k-1)%7))
					}
					return nil
				}, distributeddata.Majority)
			require.NoError(t, err)
			key := distributeddata.NewKey(fmt.Sprint("short-lived ", k), items{})
			_, err = key.Update(context.Background(), c.at(k%3),
				func(w *crdt.Writer, v *items) error {
					v.Add(w, "x")
					return nil
				}, local)
			require.NoError(t, err)
			require.NoError(t, key.Delete(context.Background(), c.at(k%3), local))
		}
		time.Sleep(10 * time.Second)
		m := c.counts()
		next := c.Restart(c.Member(2))
		c.ready(next)
		require.Less(t, m.max(), 4096, "a new member gets what is there, not what was")
		for _, i := range []int{0, 1, next.Index} {
			require.Zero(t, c.at(i).Status().Keys)
			_, err := prices.Get(context.Background(), c.at(i))
			require.ErrorIs(t, err, distributeddata.ErrNotFound, "nothing is left in it")
		}
	})
}

// akka.net 7250: a set of 20,000 identifiers could never be sent. akka 22327, 23025, 27175, 28421:
// gossip and deltas were larger than a frame.
func TestScenario_NoMessageGrowsWithTheData(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		m := c.counts()
		_, err := cart.Update(context.Background(), c.at(0), func(w *crdt.Writer, v *items) error {
			for i := range 20_000 {
				v.Add(w, fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i))
			}
			return nil
		}, distributeddata.All)
		require.NoError(t, err)
		next := c.Restart(c.Member(1))
		c.ready(next)
		require.Len(t, c.elements(next.Index), 20_000)
		require.Less(t, m.max(), 1<<20)
	})
}

// akka.net 5553: each quorum write left an entry behind.
func TestScenario_QuorumWritesLeaveNoActorsBehind(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		processes := func() (n int) {
			for _, part := range c.Member(0).System.ProcessRegistry.LocalPIDs.LocalPIDs {
				n += part.Count()
			}
			return n
		}
		require.NoError(t, c.add(0, "first", distributeddata.Majority))
		before := processes()
		for i := range 200 {
			require.NoError(t, c.add(0, fmt.Sprint(i), distributeddata.Majority))
			require.NotEmpty(t, c.elements(0, distributeddata.Majority))
		}
		synctest.Wait()
		require.Equal(t, before, processes())
	})
}

// GoAkt 94c8740c: a delete of a key that the member had not seen was sent to no other, and members
// disagreed for a day.
func TestScenario_DeleteOfAnUnknownKey(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		c.Net.Partition(addresses(c, 0), addresses(c, 1))
		require.NoError(t, c.add(1, "made elsewhere"))
		_ = cart.Delete(context.Background(), c.at(0),
			local) // it deletes what it has seen: nothing
		c.Net.Heal()
		time.Sleep(5 * time.Second)
		require.Equal(t, []string{"made elsewhere"}, c.elements(0))
		require.Equal(t, []string{"made elsewhere"}, c.elements(1))
	})
}

// GoAkt 94c8740c: an update of a deleted key reported success and changed nothing, for a day.
func TestScenario_ADeletedKeyCanBeUsedAgainAtOnce(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		require.NoError(t, c.count(0, 5, distributeddata.All))
		require.NoError(t, visits.Delete(context.Background(), c.at(1), distributeddata.All))
		require.NoError(t, c.count(2, 1, distributeddata.All))
		for i := range 3 {
			require.EqualValues(t, 1, c.total(i))
		}
	})
}

// GoAkt 94c8740c: a subscriber was not sent the present value or a deletion, got a hundred notices
// of updates that changed nothing, and its messages did not name the key. akka.net 7804:
// unsubscribing killed the replicator.
// Seen in GoAkt 94c8740c, akka 28061, akka.net 7804.
func TestScenario_SubscribersHearOfChangesAndOnlyOfThem(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		require.NoError(t, c.add(0, "before", distributeddata.All))
		var told []string
		root := c.Member(1).System.Root
		pid := root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if s, ok := ctx.Message().(string); ok {
				told = append(told, s)
			}
		}))
		stop := cart.Subscribe(c.at(1), pid, func(ch *distributeddata.Changed[items]) any {
			return fmt.Sprint(ch.Key, " ", slices.Collect(ch.Value.All()), " ", ch.Deleted)
		})
		time.Sleep(time.Second)
		for range 100 {
			require.NoError(t, c.add(0, "before")) // there already
			require.NoError(t, c.removeFrom(1, "not there"))
		}
		time.Sleep(time.Second)
		require.NoError(t, cart.Delete(context.Background(), c.at(0), distributeddata.All))
		time.Sleep(time.Second)
		stop()
		stop() // a second call does no harm
		require.NoError(t, c.add(0, "unheard", distributeddata.All))
		time.Sleep(time.Second)
		root.Stop(pid)
		synctest.Wait()
		require.Equal(t, "cart [before] false", told[0])
		require.Equal(t, "cart [] true", told[len(told)-1])
		require.LessOrEqual(t, len(told), 2+1)
	})
}

// GoAkt 94c8740c: of 64,000 questions by 64 concurrent callers, some fifty were never answered.
func TestScenario_EveryOneOfManyCallersIsAnswered(t *testing.T) {
	run(t, 3, distributeddata.Config{MinMembers: 3}, func(c *cluster) {
		var wg sync.WaitGroup
		for k := range 64 {
			wg.Go(func() {
				for range 50 {
					if err := c.count(k%3, 1, distributeddata.Majority); err != nil {
						t.Errorf("caller %d: %v", k, err)
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 64*50, c.total(0, distributeddata.Linearizable))
	})
}

// akka 26936, 29237: a system service and an application shared one replicator, and its settings.
// Seen in akka 26936, 29237, akka.net 3297.
func TestScenario_ReplicatorsOfOneMemberDoNotShareKeys(t *testing.T) {
	run(t, 2, distributeddata.Config{MinMembers: 2}, func(c *cluster) {
		var others []*distributeddata.Replicator
		for _, m := range c.Live() {
			r, err := distributeddata.New(m.System, distributeddata.Config{Name: "system",
				MinMembers: 2})
			require.NoError(t, err)
			others = append(others, r)
		}
		for _, r := range others {
			require.NoError(t, r.Ready(context.Background()))
		}
		require.NoError(t, c.add(0, "of the application", distributeddata.All))
		_, err := cart.Get(context.Background(), others[1], distributeddata.Majority)
		require.ErrorIs(t, err, distributeddata.ErrNotFound)
		for _, r := range others {
			require.NoError(t, r.Close(context.Background()))
		}
	})
}
