package testkit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/testkit"
)

// TestSpeed_FiveNodeHour reports the cost of a virtual hour with five members and a partition that
// heals. It asserts nothing, since the cost depends on the machine. With -race, seven eighths of it
// come from the race detector. With -v it measures more variants.
func TestSpeed_FiveNodeHour(t *testing.T) {
	sides := [][]int{{0, 1}, {2, 3, 4}}
	hour := func(t *testing.T, noticed bool, heartbeat time.Duration) {
		start := time.Now()
		var sent int
		testkit.Run(t, 5, func(t *testing.T, c *testkit.Cluster) {
			dd := testkit.Each(c, func(m *testkit.Member) (*distributeddata.Replicator, error) {
				return distributeddata.New(m.System, distributeddata.Config{MinMembers: 5,
					HeartbeatInterval: heartbeat})
			})
			for _, m := range c.Members() {
				if err := dd.Of(m).Ready(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			across := func(f func(m *testkit.Member, others ...*testkit.Member)) {
				for _, a := range sides[0] {
					for _, b := range sides[1] {
						f(c.Member(a), c.Member(b))
						f(c.Member(b), c.Member(a))
					}
				}
			}
			c.Partition(sides...)
			if noticed { // each side's provider drops the other side
				across((*testkit.Member).Drops)
			}
			if err := errors.Join(put(dd.At(0), "milk"), put(dd.At(4), "bread")); err != nil {
				t.Fatal(err)
			}
			c.Advance(time.Hour)
			c.Heal()
			if noticed {
				across((*testkit.Member).Lists)
			}
			testkit.Eventually(t, 5*heartbeat, func() error {
				return sameAtAll(c, dd, "bread", "milk")
			})
			sent = c.Stats().Sent
		})
		took := time.Since(start)
		t.Logf("five members, one hour, a partition and its healing: %v of wall time, %d messages, %.0f times real time",
			took.Round(time.Millisecond), sent, time.Hour.Seconds()/took.Seconds())
	}
	t.Run("providers notice", func(t *testing.T) { hour(t, true, 10*time.Second) })
	if testing.Verbose() {
		t.Run("providers do not notice", func(t *testing.T) { hour(t, false, 10*time.Second) })
		t.Run("and a heartbeat every second", func(t *testing.T) { hour(t, false, time.Second) })
	}
}
