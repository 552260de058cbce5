package node

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/testkit"
)

// TestWatch_OneLineForEachFault cuts one member off from two others, and stops another in order.
func TestWatch_OneLineForEachFault(t *testing.T) {
	testkit.Run(t, 4, func(t *testing.T, c *testkit.Cluster) {
		logs := make([]child.Screen, 4)
		for i, m := range c.Members() {
			r := &runner{session: m.Session, cfg: RunConfig{
				Logger: slog.New(slog.NewTextHandler(&logs[i], nil))}}
			lifecycle.OnHosted(m.System, func(addresses []string) string {
				if slices.Contains(addresses, c.Member(0).Address) {
					return "11 shards of cart"
				}
				return ""
			})
			r.startWatch(&Node{System: m.System})
		}
		c.Advance(10 * time.Second)
		require.NoError(t, c.Member(3).Leave(t.Context()))
		c.Advance(10 * time.Second)
		split(c, []int{0}, []int{1, 2})
		c.Advance(2 * time.Second)
		for i, want := range []string{"1 of 3", "2 of 3", "2 of 3"} {
			text := logs[i].String()
			require.Equal(t, 1, strings.Count(text, "members left"), text)
			require.Contains(t, text, want)
			warned := strings.Count(text, "level=WARN")
			require.Equal(t, strings.Count(text, "members dropped"), warned, text)
			for j := range 3 {
				if (i == 0) != (j == 0) {
					require.Contains(t, text, c.Member(j).System.Address())
				}
			}
		}
		require.Contains(t, logs[0].String(), "no majority")
		require.Contains(t, logs[0].String(), "hosted=\"nothing that is known here\"")
		require.Contains(t, logs[1].String(), "in at most 8s")
		require.Contains(t, logs[1].String(), "hosted=\"11 shards of cart\"")
		c.Heal()
		c.Advance(10 * time.Second)
	})
}

// TestWatch_AMemberReplacedAtItsAddress kills a member and starts it again before the others drop
// it; then it leaves in order and starts again.
func TestWatch_AMemberReplacedAtItsAddress(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		var log child.Screen
		m := c.Member(0)
		lifecycle.OnHosted(m.System, func(addresses []string) string {
			return "5 shards of cart at " + strings.Join(addresses, ", ")
		})
		r := &runner{session: m.Session, cfg: RunConfig{
			Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		r.startWatch(&Node{System: m.System})
		c.Advance(10 * time.Second)
		for range 2 {
			c.Member(2).Crash()
			c.Member(2).Restart()
			c.Advance(10 * time.Second)
		}
		c.Member(2).Crash()
		c.Member(2).Expel() // for a moment
		c.Advance(200 * time.Millisecond)
		c.Member(2).Restart()
		c.Advance(10 * time.Second)
		require.NoError(t, c.Member(2).Leave(t.Context()))
		c.Advance(100 * time.Millisecond) // its good-bye arrives
		c.Member(2).Restart()
		c.Advance(10 * time.Second)
		warned := log.With("level=WARN")
		require.Len(t, warned, 3, log.String())
		for _, line := range warned {
			require.Contains(t, line, "members replaced")
			require.Contains(t, line, "replaced="+c.Member(2).Address)
			require.Contains(t, line, "5 shards of cart at "+c.Member(2).Address)
			require.Contains(t, line, "in at most 8s")
		}
		c.Member(2).Crash()
		c.Member(2).Expel()
		c.Advance(10 * time.Second)
		c.Member(2).Restart()
		c.Advance(10 * time.Second)
		require.Len(t, log.With("members replaced"), 3, "it was logged as dropped")
		require.Len(t, log.With("members are back"), 1)
	})
}

// A member that has never reached another one said "2 of 2" in a cluster that counts three.
func TestHealth_CountsMembersThatWereNeverSeen(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		var h Health
		h.logsTo(slog.New(slog.DiscardHandler))
		n := &Node{System: c.Member(0).System}
		h.up(n)
		c.Advance(10 * time.Second)
		require.Contains(t, strings.Join(h.details(), "\n"), "members: 2 of 2: ")
		n.counted.Store(3)
		require.Contains(t, strings.Join(h.details(), "\n"), "members: 2 of 3: ")
		c.Member(1).Crash()
		c.Member(1).Expel()
		c.Advance(10 * time.Second)
		require.Contains(t, strings.Join(h.details(), "\n"), "members: 1 of 3: ")
	})
}
