//go:build unix

package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// goneMembers is a memory of n members that are gone.
func goneMembers(n int) quorum.Memory {
	all := make([]quorum.Member, n)
	for i := range all {
		all[i] = quorum.Member{Name: fmt.Sprintf("10.1.%03d.%03d:8090", i/250, i%250),
			Inc:  quorum.Incarnation{Number: 1, Replica: causal.Replica(i+1) << 20},
			Rank: quorum.Gone, Order: uint64(i + 1)}
	}
	return quorum.Remember(all)
}

// joinAfter returns what it costs all members together that a member joins them after n others have
// departed.
func joinAfter(members, n int) (t tally, took time.Duration, f *fleet) {
	f = newFleet(members, 10)
	if n > 0 {
		for _, c := range f.cores {
			c.cluster().recall(c.members.Merge(goneMembers(n)))
		}
	}
	f.rest()
	before := f.of[wire.ReplicatorMembers]
	f.start(f.core())
	f.views()
	at := f.now
	f.until(time.Minute, f.ready)
	took = f.now.Sub(at)
	f.rest()
	after := f.of[wire.ReplicatorMembers]
	return tally{after.messages - before.messages, after.bytes - before.bytes}, took, f
}

// A new member hears of the departed members once, and the others do not repeat them.
func TestJoin_DepartedMembersAreToldOnce(t *testing.T) {
	const gone = 2000
	for _, members := range []int{3, 12} {
		_, took, _ := joinAfter(members, 0)
		cost, tookToo, f := joinAfter(members, gone)
		require.True(t, f.ready())
		require.Less(t, cost.bytes, 60*gone+1000*members, "%d members", members)
		require.Less(t, tookToo, took+time.Second)
		for _, c := range f.cores {
			require.Equal(t, f.cores[0].members.Digest(), c.members.Digest())
			require.Equal(t, gone+members+1, len(c.members.Members()))
		}
	}
}

// Members that have not heard of the same departed members tell each other of them.
func TestPull_DepartedMembersThatDifferAreTold(t *testing.T) {
	f := newFleet(3, 10)
	f.cores[0].cluster().recall(f.cores[0].members.Merge(goneMembers(3 * quorum.FewGone)))
	f.cores[1].cluster().recall(f.cores[1].members.Merge(goneMembers(2 * quorum.FewGone)))
	f.rest()
	for _, c := range f.cores {
		require.Equal(t, 3*quorum.FewGone, c.members.Count(quorum.Gone))
		require.Equal(t, f.cores[0].members.Digest(), c.members.Digest())
	}
}

// BenchmarkDeparted measures what a join costs after others have departed.
func BenchmarkDeparted(b *testing.B) {
	for _, members := range []int{3, 48} {
		for _, n := range []int{0, 100, 1000, 10_000} {
			b.Run(fmt.Sprintf("members=%d/departed=%d", members, n), func(b *testing.B) {
				for b.Loop() {
					cost, took, _ := joinAfter(members, n)
					b.ReportMetric(float64(took.Milliseconds()), "ms")
					b.ReportMetric(float64(cost.messages), "record-msgs")
					b.ReportMetric(float64(cost.bytes), "record-B")
					if most := 60*n + 100*members*members; cost.bytes > most {
						b.Errorf("%d bytes, at most %d", cost.bytes, most)
					}
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
