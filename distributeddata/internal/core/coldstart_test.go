//go:build unix

package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// newColdFleet returns members that start within spread of each other, each with an empty state.
// Each sees the others that have started, and a message takes latency.
func newColdFleet(members, minMembers int, latency, spread time.Duration, seed uint64) *fleet {
	f := emptyFleet()
	f.rand = rand.New(rand.NewPCG(seed, 1))
	f.latency = latency
	for range members {
		f.minMembers = minMembers
		f.start(f.core())
	}
	started := make([]bool, members)
	for i := range members {
		f.after(f.upTo(spread), func() {
			started[i] = true
			for j := range members {
				if started[j] {
					f.after(f.upTo(100*time.Millisecond), func() { f.viewOf(j, started) })
				}
			}
		})
	}
	return f
}

// viewOf gives a member the view of all members that have started.
func (f *fleet) viewOf(i int, started []bool) {
	var others []Member
	for j := range f.cores {
		if j != i && started[j] && f.cores[j] != nil {
			others = append(others, Member{ID: fmt.Sprint(j)})
		}
	}
	f.step(i, View{Others: others})
}

func (f *fleet) ready() bool {
	return !slices.ContainsFunc(f.cores, func(c *Core) bool { return c != nil && !c.Ready() })
}

// A simultaneous start costs each member a bounded number of small messages for each other member.
func TestColdStart_CostsFewSmallMessages(t *testing.T) {
	const members = 40
	f := newColdFleet(members, members/2+1, 10*time.Millisecond, 300*time.Millisecond, 1)
	f.until(time.Minute, f.ready)
	require.True(t, f.ready())
	pairs := members * (members - 1)
	require.Less(t, f.all().messages, 13*pairs)
	require.Less(t, f.all().bytes, 600*pairs)
	require.Less(t, f.of[wire.ReplicatorMembers].bytes, 400*pairs)
}

// While a cluster starts cold, members end for good, at any moment. The others form the cluster, if
// they are MinMembers, and those that ended are too few to have acknowledged anything on their own.
func TestColdStart_SomeEndForGood(t *testing.T) {
	for _, size := range []struct{ members, ends, minMembers int }{
		{4, 1, 3}, {5, 1, 3}, {6, 2, 4}, {9, 3, 6},
	} {
		for at := range 150 {
			seed := uint64(1000*size.members + at)
			f := newColdFleet(size.members, size.minMembers, time.Millisecond,
				100*time.Millisecond, seed)
			for _, i := range f.rand.Perm(size.members)[:size.ends] {
				f.after(time.Duration(at)*2*time.Millisecond+f.upTo(100*time.Millisecond), func() {
					f.cores[i] = nil
					f.views()
				})
			}
			f.until(time.Minute, f.ready)
			require.True(t, f.ready(), "%+v, seed %d", size, seed)
		}
	}
}

// Members that are missing have never voted if they are fewer than any quorum needs without those
// that have answered, or have never counted.
func TestMembers_NeverVoted(t *testing.T) {
	in := func(name string, version uint64) quorum.Member {
		return quorum.Member{Name: name, Rank: quorum.In, Version: version,
			Inc: quorum.Incarnation{Number: 1, Replica: causal.Replica(name[0])}}
	}
	joined := peers{{replica: 'c', peerVote: peerVote{votes: true, refilled: true, entering: true}},
		{replica: 'd', peerVote: peerVote{votes: true, refilled: true, entering: true}}}
	counts := &peer{replica: 'b', peerVote: peerVote{votes: true, refilled: true, answered: true}}
	restarted := &peer{replica: 'b', peerVote: peerVote{votes: true, refilled: true}}
	five := []quorum.Member{in("a", 0), in("b", 0), in("c", 0), in("d", 0), in("e", 0)}
	for _, c := range []struct {
		what    string
		members []quorum.Member
		peers   peers
		lowest  int
		want    bool
	}{
		{"one of three", five[1:], joined, 3, true},
		{"one of one", five[1:], joined, 1, false},
		{"two of three", five, joined, 3, false},
		{"two of four", five, joined, 4, true},
		{"one beside one that counts", five, append(joined, counts), 3, true},
		{"one beside one that was restarted", five, append(joined, restarted), 3, false},
		{"one after others", append(five[2:], in("b", 1)), joined, 3, false},
		{"one after one that is gone", append(five[1:], quorum.Member{Name: "x", Rank: quorum.Gone}),
			joined, 3, false},
	} {
		r := newMembers(Config{Member: "e", MinMembers: c.lowest})
		r.entering, r.Memory = true, quorum.Remember(c.members)
		require.Equal(t, c.want, r.neverVoted(c.peers), c.what)
		r = newMembers(Config{Member: "e", MinMembers: c.lowest, Recorded: true})
		require.False(t, r.neverVoted(c.peers))
	}
}

// Of three members one has ended for good when another one crashes: what these two acknowledged may
// be lost, so the crashed one does not count again by itself. An operator who forgets the lost one
// by force and starts a third has a cluster again, with all that the member that stayed holds.
func TestColdStart_AfterTheLossOfAMajorityForceAndNewMember(t *testing.T) {
	f := newColdFleet(3, 3, time.Millisecond, 100*time.Millisecond, 1)
	f.until(time.Minute, f.ready)
	require.True(t, f.ready())
	f.update(0, "key")
	f.pass(time.Second)
	f.cores[2], f.cores[1] = nil, f.coreOf(1)
	f.views()
	f.pass(time.Minute)
	require.False(t, f.cores[1].Ready())
	f.step(0, Forget{ID: 1, Member: "2", Force: true, Deadline: f.now.Add(time.Minute)})
	f.pass(time.Minute)
	require.False(t, f.cores[1].Ready(), "MinMembers is 3")
	f.start(f.core())
	f.views()
	f.until(time.Minute, f.ready)
	require.True(t, f.ready())
	require.True(t, f.equal())
	_, ok := f.cores[3].Keys().Get("key")
	require.True(t, ok)
}

// BenchmarkColdStart measures how n members form a cluster: the time, the messages and the bytes of
// all of them, and those that carry membership records.
func BenchmarkColdStart(b *testing.B) {
	for _, latency := range []time.Duration{time.Millisecond, 80 * time.Millisecond} {
		for _, n := range []int{3, 6, 12, 24, 48, 100, 200, 400} {
			b.Run(fmt.Sprintf("latency=%v/members=%d", latency, n), func(b *testing.B) {
				for b.Loop() {
					f := newColdFleet(n, n/2+1, latency, 300*time.Millisecond, 1)
					took := f.until(2*time.Minute, f.ready)
					pairs := n * (n - 1)
					if took > 10*time.Second || f.all().messages > 16*pairs ||
						f.all().bytes > 600*pairs {
						b.Errorf("%d members: %v, %d messages, %d bytes", n, took, f.all().messages,
							f.all().bytes)
					}
					b.ReportMetric(float64(took.Milliseconds()), "ms")
					b.ReportMetric(float64(f.all().messages), "msgs")
					b.ReportMetric(float64(f.all().bytes), "B")
					b.ReportMetric(float64(f.of[wire.ReplicatorMembers].messages), "record-msgs")
					b.ReportMetric(float64(f.of[wire.ReplicatorMembers].bytes), "record-B")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
