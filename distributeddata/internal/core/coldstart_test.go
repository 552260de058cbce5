//go:build unix

package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
)

// newColdFleet returns members that start within spread of each other, each with an empty state.
// Each sees the others that have started, and a message takes latency.
func newColdFleet(members, minMembers int, latency, spread time.Duration) *fleet {
	f := emptyFleet()
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
		if j != i && started[j] {
			others = append(others, Member{ID: fmt.Sprint(j)})
		}
	}
	f.step(i, View{Others: others})
}

func (f *fleet) ready() bool {
	return !slices.ContainsFunc(f.cores, func(c *Core) bool { return !c.Ready() })
}

// A simultaneous start costs each member a bounded number of small messages for each other member.
func TestColdStart_CostsFewSmallMessages(t *testing.T) {
	const members = 40
	f := newColdFleet(members, members/2+1, 10*time.Millisecond, 300*time.Millisecond)
	f.until(time.Minute, f.ready)
	require.True(t, f.ready())
	pairs := members * (members - 1)
	require.Less(t, f.all().messages, 13*pairs)
	require.Less(t, f.all().bytes, 600*pairs)
	require.Less(t, f.of[wire.ReplicatorMembers].bytes, 400*pairs)
}

// BenchmarkColdStart measures how n members form a cluster: the time, the messages and the bytes of
// all of them, and those that carry membership records.
func BenchmarkColdStart(b *testing.B) {
	for _, latency := range []time.Duration{time.Millisecond, 80 * time.Millisecond} {
		for _, n := range []int{3, 6, 12, 24, 48, 100, 200} {
			b.Run(fmt.Sprintf("latency=%v/members=%d", latency, n), func(b *testing.B) {
				for b.Loop() {
					f := newColdFleet(n, n/2+1, latency, 300*time.Millisecond)
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
