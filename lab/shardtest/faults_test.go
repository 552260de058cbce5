package shardtest_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/lab/netem"
)

const perEntity = 400 // messages that each member sends to each entity, before and after the fault

// A member is stopped with SIGSTOP for longer than the TTL while it handles messages. The others
// take its shards over. When it goes on, it finishes the message that each entity was handling, and
// handles no other one under the token it had. It may get a shard again, with a larger token,
// before it finds that the others have expelled it.
func TestReal_AFrozenMemberHandlesNothingWhenItGoesOn(t *testing.T) {
	c := start(t, 3, 24)
	c.settled()
	frozen, others := c.live[0], c.live[1:]
	for _, p := range c.live {
		c.tell(p, command{Send: perEntity, Entities: entities})
	}
	time.Sleep(time.Second)
	require.NoError(t, frozen.Signal(syscall.SIGSTOP))
	c.live[0] = nil
	stopped := time.Now()
	c.list()
	t.Logf("all shards are active again %v after the SIGSTOP, with a TTL of %v", c.settled(), ttl)
	require.Greater(t, time.Since(stopped), ttl/2, "nobody took a shard before its lease was over")
	for _, p := range others {
		c.sent(p)
		c.tell(p, command{Send: perEntity, Entities: entities})
	}
	for _, p := range others {
		c.sent(p)
	}
	c.until(2*perEntity-1, "m1", "m2")
	before := c.handled(entities)

	require.NoError(t, frozen.Signal(syscall.SIGCONT))
	select { // it finds that it is on the wrong side of a split, and exits
	case <-frozen.Gone():
	case <-time.After(patience):
		t.Fatal("it goes on as if nothing had happened")
	}
	for e, lines := range c.written(entities) {
		var late []line
		for _, l := range lines[len(before[e]):] {
			if l.token < before[e][len(before[e])-1].token {
				late = append(late, l)
			}
		}
		require.LessOrEqual(t, len(late), 1, "entity %d: %v", e, late)
		for _, l := range late {
			require.Equal(t, "m0", l.at)
			t.Logf("entity %d has finished message %d of %s", e, l.n, l.sender)
		}
	}
}

// A member is cut off from the others, and all reach the lease store. The member finds that another
// holds the coordinator's lease and gives its shards up; the others serve them.
func TestReal_ACutOffMemberGivesItsShardsUp(t *testing.T) {
	net := netem.New(t, 3)
	c := startOn(t, net, 3, 24)
	c.settled()
	for _, p := range c.live {
		c.tell(p, command{Send: perEntity, Entities: entities})
	}
	time.Sleep(time.Second)
	leader := c.coordinator()
	cut := slices.IndexFunc(c.live, func(p *process) bool { return p.name != leader })
	t.Logf("%s coordinates, %s is cut off", leader, c.live[cut].name)
	net.Isolate(cut)
	begun := time.Now()
	far := c.live[cut]
	near := slices.DeleteFunc(slices.Clone(c.live), func(p *process) bool { return p == far })
	c.group(far)
	c.group(near...)
	c.serveWithout(far, near, begun)
}

// serveWithout waits until near, two members that have sent messages, serve all shards and have
// handled further messages. The other member, cut off since begun, then has no shard.
func (c *members) serveWithout(far *process, near []*process, begun time.Time) {
	c.t.Helper()
	c.serve(near...)
	c.t.Logf("the others serve all shards %v after the cut",
		time.Since(begun).Round(time.Millisecond))
	for _, p := range near {
		c.sent(p)
		c.tell(p, command{Send: perEntity, Entities: entities})
	}
	for _, p := range near {
		c.sent(p)
	}
	c.until(2*perEntity-1, near[0].name, near[1].name)
	require.Zero(c.t, c.active(far))
}

// A member no longer hears the coordinator, which no member's list shows; its own packets pass. The
// others serve its shards, and it hosts none.
func TestReal_MemberWithoutCoordinatorGivesUpShards(t *testing.T) {
	net := netem.New(t, 3)
	c := startOn(t, net, 3, 24)
	c.settled()
	for _, p := range c.live {
		c.tell(p, command{Send: perEntity, Entities: entities})
	}
	time.Sleep(time.Second)
	name := c.coordinator()
	leader := slices.IndexFunc(c.live, func(p *process) bool { return p.name == name })
	deaf := (leader + 1) % len(c.live)
	t.Logf("%s coordinates, %s does not hear it", name, c.live[deaf].name)
	net.Set(leader, deaf, netem.Link{Cut: true})
	begun := time.Now()
	far := c.live[deaf]
	near := slices.DeleteFunc(slices.Clone(c.live), func(p *process) bool { return p == far })
	c.serveWithout(far, near, begun)
	net.Heal()
	c.hosts(far, 6) // shards come back for balance
}

// coordinator returns the name of the process that holds the coordinator's lease.
func (c *members) coordinator() string {
	c.t.Helper()
	leases, err := file.Open(filepath.Join(c.dir, "leases"))
	require.NoError(c.t, err)
	defer leases.Close()
	held, _, err := leases.Load(c.t.Context(), "shard-log-coordinator")
	require.NoError(c.t, err)
	require.NotEmpty(c.t, held.Owner)
	return held.Owner
}

// The lease store answers nobody for longer than the TTL: entities stop before their leases end,
// and messages wait. Then every shard is served again.
func TestReal_AnOutageOfTheStore(t *testing.T) {
	c := start(t, 3, 24)
	c.settled()
	for _, p := range c.live {
		c.tell(p, command{Send: perEntity, Entities: entities})
	}
	time.Sleep(time.Second)
	require.NoError(t, os.WriteFile(c.away(), nil, 0o600))
	begun := time.Now()
	for _, p := range c.live {
		c.sent(p)
		for c.active(p) > 0 {
			require.Less(t, time.Since(begun), patience, "%s hosts shards without a lease", p.name)
			time.Sleep(50 * time.Millisecond)
		}
	}
	t.Logf("no shard is active %v after the store fell silent, with a TTL of %v",
		time.Since(begun).Round(time.Millisecond), ttl)
	dark := c.handled(entities)
	for _, p := range c.live {
		c.tell(p, command{Send: perEntity, Entities: entities})
	}
	for _, p := range c.live {
		c.sent(p)
	}
	require.Equal(t, dark, c.handled(entities), "no entity handles a message without a lease")
	require.NoError(t, os.Remove(c.away()))
	t.Log("all shards are active again after", c.settled())
	c.until(2*perEntity-1, "m0", "m1", "m2")
}
