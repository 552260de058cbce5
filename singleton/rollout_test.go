package singleton_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/singleton"
)

// A rolling update adds a singleton. It is served while members of the old version, which do not
// know it, still run, and from each of the new ones; another update then removes it.
func TestRollout_AddsAndRemovesASingleton(t *testing.T) {
	knows := 2 // the members from this index on have the singleton
	o := options{unaware: func(i int) bool { return i < knows }}
	run(t, 4, o, func(c *testCluster) {
		for i := 2; i < 4; i++ {
			host, took := c.found(c.node(i), 20*time.Second)
			require.Equal(t, "m002", host)
			require.Less(t, took, 15*time.Second)
		}
		knows = 0
		olds := []*simnetMember{c.Member(0), c.Member(1)}
		for _, old := range olds {
			m := c.Restart(old)
			synctest.Wait()
			host, took := c.found(c.nodes[m], 20*time.Second)
			require.Equal(t, "m002", host, "the new one is younger")
			require.Less(t, took, time.Second)
		}
		knows = 100
		for _, i := range []int{2, 3} { // in order: they hand over
			require.NoError(t, c.node(i).leave(5*time.Second))
			c.Restart(c.Member(i))
			synctest.Wait()
			for _, old := range olds {
				_, took := c.found(c.nodes[c.at(old.Address)], 20*time.Second)
				require.Less(t, took, 2*time.Second)
			}
		}
	})
}

// A rolling update gives members a new role, and a singleton that needs it.
func TestRollout_AddsARole(t *testing.T) {
	first := 2
	aware := func(i int) bool { return i >= first }
	o := options{cfg: singleton.Config{Role: "new"}, unaware: func(i int) bool { return !aware(i) },
		roles: func(i int) []string {
			if aware(i) {
				return []string{"old", "new"}
			}
			return []string{"old"}
		}}
	run(t, 3, o, func(c *testCluster) {
		host, took := c.found(c.node(2), 20*time.Second)
		require.Equal(t, "m002", host)
		require.Less(t, took, 5*time.Second)
		first = 0
		m := c.Restart(c.Member(0))
		synctest.Wait()
		host, took = c.found(c.nodes[m], 20*time.Second)
		require.Equal(t, "m002", host)
		require.Less(t, took, time.Second)
	})
}

// A member with the role may have only a proxy. It is not expected to host, even if it is the
// oldest.
func TestProxy_AtTheOldestMemberWithTheRole(t *testing.T) {
	o := options{cfg: singleton.Config{Role: "backend"},
		roles:   func(int) []string { return []string{"backend"} },
		proxies: func(i int) bool { return i == 0 }}
	run(t, 3, o, func(c *testCluster) {
		for i := range 3 {
			host, took := c.found(c.node(i), 20*time.Second)
			require.Equal(t, "m001", host)
			require.Less(t, took, 15*time.Second)
		}
		require.Zero(t, c.node(0).single.Stats().Panics)
	})
}

// Members whose settings of one singleton differ would each host an instance. The younger one does
// not host, and reports why it is not ready.
func TestSettings_ThatDifferAreReported(t *testing.T) {
	for name, adjust := range map[string]func(*singleton.Config){
		"Role":      func(cfg *singleton.Config) { cfg.Role = "backend" },
		"LeaseName": func(cfg *singleton.Config) { cfg.LeaseName = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			o := options{roles: func(int) []string { return []string{"backend"} },
				adjust: func(i int, cfg *singleton.Config) {
					if i == 1 {
						cfg.LeaseName = "another"
						adjust(cfg)
					}
				}}
			run(t, 2, o, func(c *testCluster) {
				time.Sleep(time.Minute)
				require.Equal(t, 1, c.alive.count())
				require.Equal(t, []string{"m000"}, c.alive.starts)
				err := lifecycle.Of(c.Member(1).System).Check()
				require.ErrorContains(t, err, `singleton "jobs": member m000 has another Role or LeaseName`)
				require.ErrorContains(t, lifecycle.Of(c.Member(0).System).Check(), "member m001")
			})
		})
	}
}

// At rest a member sends one message a second to each other member, whatever the number of
// singletons.
func TestRest_OneMessageForAllSingletons(t *testing.T) {
	const count = 64
	run(t, 3, options{}, func(c *testCluster) {
		var more []*singleton.Singleton
		defer func() {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			for _, s := range more {
				_ = s.Close(ended)
			}
		}()
		for _, m := range c.Live() {
			for i := range count {
				s, err := singleton.New(m.System, c.nodes[m].session,
					singleton.Config{Name: fmt.Sprint("more-", i)},
					func(coordination.Tenure) actor.Actor { return quiet{} })
				require.NoError(t, err)
				more = append(more, s)
			}
		}
		time.Sleep(time.Minute)
		before := c.Net.Stats()
		time.Sleep(100 * time.Second)
		sent := c.Net.Stats().Sent - before.Sent
		rate := float64(sent) / 100 / 3
		t.Logf("%v messages a second for each member", rate)
		require.Less(t, rate, 2.5, "there are two others, and membership has messages too")
	})
}

type quiet struct{}

func (quiet) Receive(actor.Context) {}
