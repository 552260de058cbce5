package singleton_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/singleton"
)

// A rolling update that begins with the youngest member moves the instance once, to the first
// member of the new version, and loses no message.
func TestPrefer_ARollingUpdateMovesTheInstanceOnce(t *testing.T) {
	o := options{
		cfg: singleton.Config{PreferNewest: true},
		version: func(i int) string {
			if i < 4 {
				return "1.9"
			}
			return "1.10.0"
		},
	}
	run(t, 4, o, func(c *testCluster) {
		c.found(c.node(3), 20*time.Second)
		sent := 0
		for i := 3; i >= 0; i-- {
			old := c.node(i)
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			require.NoError(t, old.single.Close(ctx))
			_ = old.session.Close(ctx)
			next := c.nodes[c.Restart(old.Member)]
			for range 20 { // while the new member joins, and claims the instance
				_, err := next.single.Ask(ctx, wrapperspb.String(fmt.Sprint("m", sent)))
				require.NoError(t, err)
				sent++
				time.Sleep(500 * time.Millisecond)
			}
			cancel()
			synctest.Wait()
		}
		require.Equal(t, []string{"m000", "m004"}, c.alive.starts)
		require.Equal(t, texts("m", sent), c.alive.notes(), "each message once, in order")
		require.Less(t, c.alive.gap(), 100*time.Millisecond, "the next host was ready")
	})
}

// A member with the preferred role gets the instance when it is ready to host. While there is none,
// another member hosts.
func TestPrefer_AMemberWithTheRole(t *testing.T) {
	o := options{
		cfg: singleton.Config{PreferRole: "big", MinMembers: 3},
		roles: func(i int) []string {
			if i > 0 && i != 2 {
				return []string{"big"}
			}
			return nil
		},
	}
	run(t, 3, o, func(c *testCluster) {
		host, _ := c.found(c.node(0), 20*time.Second)
		require.Equal(t, "m001", host)
		require.Equal(t, []string{"m001"}, c.alive.starts, "made once at the cold start")
		require.NoError(t, c.node(1).leave(20*time.Second))
		c.Leave(c.Member(1))
		host, _ = c.found(c.node(2), 20*time.Second)
		require.Equal(t, "m000", host, "none with the role is left")
		joined := c.nodes[c.Join()]
		time.Sleep(10 * time.Second)
		host, _ = c.found(joined, 20*time.Second)
		require.Equal(t, "m003", host)
		require.Equal(t, []string{"m001", "m000", "m003"}, c.alive.starts)
		c.Crash(c.Member(3))
		joined.store.away(true)
		c.Unlist(c.Live(), []*simnetMember{c.Member(3)})
		synctest.Wait()
		host, took := c.found(c.node(2), time.Minute)
		require.Equal(t, "m000", host)
		require.Less(t, took, stale+time.Second, "no wait for a claim beyond the time to live")
	})
}

// Members whose configurations differ have one host, which all of them find: the oldest of those
// that prefer themselves. Without that rule each of them elects another one.
func TestPrefer_MembersThatDisagreeHaveOneHost(t *testing.T) {
	o := options{
		version: func(i int) string { return []string{"", "1", "3", "2"}[i] },
		roles:   func(i int) []string { return [][]string{nil, nil, nil, {"big"}}[i] },
		adjust: func(i int, cfg *singleton.Config) {
			cfg.PreferNewest = i == 1 || i == 2
			if i == 3 {
				cfg.PreferRole = "big"
			}
		},
	}
	run(t, 4, o, func(c *testCluster) {
		time.Sleep(20 * time.Second) // all claim at the same time: the instance may move before
		for i := range 4 {
			host, _ := c.found(c.node(i), 20*time.Second)
			require.Equal(t, "m002", host, "from %d", i)
		}
		starts := c.alive.starts
		require.LessOrEqual(t, len(starts), 3)
		time.Sleep(5 * time.Minute)
		require.Equal(t, starts, c.alive.starts)
		c.Crash(c.Member(2))
		c.node(2).store.away(true)
		c.Unlist(c.Live(), []*simnetMember{c.Member(2)})
		synctest.Wait()
		for _, i := range []int{0, 1, 3} { // now 3 has the newest version and the role
			host, _ := c.found(c.node(i), time.Minute)
			require.Equal(t, "m003", host, "from %d", i)
		}
		time.Sleep(5 * time.Minute)
		require.Equal(t, append(starts, "m003"), c.alive.starts)
	})
}

// A member where instances fail does not claim the instance again and again.
func TestPrefer_AFailingHostDoesNotTakeTheInstanceBack(t *testing.T) {
	o := options{
		cfg:     singleton.Config{PreferNewest: true, Tries: 2},
		version: func(i int) string { return fmt.Sprint(i) },
	}
	run(t, 2, o, func(c *testCluster) {
		host, _ := c.found(c.node(0), 20*time.Second)
		require.Equal(t, "m001", host)
		for range 2 {
			c.node(0).System.Root.Send(c.node(0).single.PID(), wrapperspb.String("panic"))
			time.Sleep(time.Second)
		}
		host, _ = c.found(c.node(1), 20*time.Second)
		require.Equal(t, "m000", host)
		time.Sleep(4 * time.Minute)
		host, _ = c.found(c.node(1), time.Second)
		require.Equal(t, "m000", host)
	})
}

func TestPrefer_TheRoleOfAllHostsIsNoPreference(t *testing.T) {
	err := settings.Check(singleton.Config{Name: "jobs", Role: "big", PreferRole: "big"})
	require.ErrorIs(t, err, singleton.ErrInvalid)
	require.ErrorContains(t, err, `PreferRole "big" must differ from Role`)
}
