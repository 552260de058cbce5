package sharding_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/sharding"
)

// Each member in turn is replaced by one of a newer version, the youngest first, under load. While
// versions differ, shards leave only members that stop, for members of the newest version. They are
// balanced after the update. No message is lost or reordered.
func TestRollingUpdate_MovesEachShardAtMostTwice(t *testing.T) {
	const old = 3
	version := func(i int) string { return map[bool]string{true: "1.0", false: "1.1"}[i < old] }
	run(t, old, options{version: version}, func(c *testCluster) {
		c.settled(20*time.Second, c.all()...)
		l := c.load(7)
		defer l.end()
		homes := func() (out []string) {
			for _, s := range c.all()[0].region.Status().Shards {
				out = append(out, s.Home)
			}
			return out
		}
		moved := make([]int, 16)
		last := homes()
		// moves waits, and returns the members whose shards have moved, and where to.
		moves := func(wait time.Duration) (from, to map[string]bool) {
			time.Sleep(wait)
			c.settled(10*time.Second, c.all()...)
			time.Sleep(time.Second) // all members have heard
			from, to = map[string]bool{}, map[string]bool{}
			for n, home := range homes() {
				if home != last[n] {
					moved[n]++
					from[last[n]], to[home] = true, true
				}
				last[n] = home
			}
			return from, to
		}
		for i := old - 1; i >= 0; i-- {
			n := c.node(i)
			require.NoError(t, n.leave(20*time.Second))
			c.Leave(n.Member)
			from, to := moves(0)
			require.Equal(t, map[string]bool{n.ID: true}, from)
			if i < old-1 {
				require.Equal(t, map[string]bool{c.node(old + 1 - i).ID: true}, to, "the newest")
			}
			m := c.Join()
			require.NoError(t, start(context.Background(), c.nodes[m]))
			if i > 0 {
				from, _ = moves(time.Minute)
				require.Empty(t, from, "versions differ")
			}
		}
		for n, k := range moved {
			require.LessOrEqual(t, k, 2, "shard %d", n)
		}
		moves(2 * time.Minute)
		for _, n := range c.all() {
			active := n.region.Status().Count(sharding.Active)
			require.Contains(t, []int{5, 6}, active, "%s", n.ID)
		}
		l.handled()
	})
}

// load is messages from every member to some entities.
type load struct {
	c    *testCluster
	end  func() // the last message has been sent when it returns
	sent map[string]int
}

func (c *testCluster) load(entities int) *load {
	l := &load{c: c, sent: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			for _, n := range c.all() {
				for e := range entities {
					l.send(n, fmt.Sprint("e", e))
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	l.end = func() {
		cancel()
		wg.Wait()
	}
	return l
}

// send sends the next message of a member to an entity, unless the member has stopped.
func (l *load) send(n *node, id string) {
	key := id + " " + n.ID + " "
	if n.region.Ref(id).Tell(wrapperspb.String(fmt.Sprint(n.ID, " ", l.sent[key]))) == nil {
		l.sent[key]++
	}
}

// handled checks that each message was handled once and in order.
func (l *load) handled() {
	l.c.t.Helper()
	l.end()
	time.Sleep(10 * time.Second)
	for key, n := range l.sent {
		require.Equal(l.c.t, texts("", n), l.c.alive.notes(key), key)
	}
}
