package members

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/node"
	"github.com/concord-go/concord/node/provider/automanaged"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

const wholeEnv = "CONCORD_NODE_WHOLE_TEST"

// whole configures a member with every component, in a process of its own.
type whole struct {
	Index        int
	Port, Health int
	Hosts        []string // health addresses of all
	Dir          string   // of the lease store
	MinMembers   int      // 0: 3
	Talks        bool     // an actor sends messages until the actor system ends
	Refuses      string   // "calls" or "writes" of the lease store fail until it is released
	Marks        string   // a directory: an entity keeps a file there while it runs
}

// runWhole is the main function of such a process. It prints "up" when its work has begun, "here"
// when the singleton starts in it, "placed" when it knows the homes of all shards, and then the
// number of shards that are active in it.
func runWhole() {
	var s whole
	if err := json.Unmarshal([]byte(os.Getenv(wholeEnv)), &s); err != nil {
		panic(err)
	}
	node.Main(node.RunConfig{
		Cluster: "clean", Remote: node.Config{Port: s.Port}, MinMembers: cmp.Or(s.MinMembers, 3),
		Provider: automanaged.New(automanaged.Config{Port: s.Health, Hosts: s.Hosts,
			Refresh: 200 * time.Millisecond, DropAfter: 10 * time.Second}),
		Store:   s.store,
		Session: coordination.Config{TTL: 10 * time.Second},
		Logger:  slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, func(n *node.Node) error {
		dd, err := distributeddata.New(n.System, distributeddata.Config{})
		if err != nil {
			return err
		}
		clerk, err := singleton.New(n.System, n.Session, singleton.Config{Name: "clerk"},
			func(coordination.Tenure) actor.Actor {
				return actor.ReceiveFunc(func(ctx actor.Context) {
					if _, ok := ctx.Message().(*actor.Started); ok {
						fmt.Println("here")
					}
				})
			})
		if err != nil {
			return err
		}
		carts, err := sharding.New[*wrapperspb.StringValue](n.System, n.Session, dd,
			sharding.Config{Type: "cart", Shards: 16},
			func(e sharding.Entity) actor.Actor { return &marked{e, s.Marks} })
		if err != nil {
			return err
		}
		n.Go(func(ctx context.Context) error {
			if s.Talks {
				n.System.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
					return &talker{clerk: clerk.PID(), carts: carts.PID(), dd: dd.PID()}
				}))
			}
			fmt.Println("up")
			for slices.ContainsFunc(carts.Status().Shards, unplaced) {
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
					return nil
				}
			}
			fmt.Println("placed")
			s.countShards(ctx, carts)
			return nil
		})
		return err
	})
}

// unplaced reports whether a shard has no home yet, or moves.
func unplaced(s sharding.ShardStatus) bool {
	return s.Home == "" || s.State != sharding.Active && s.State != sharding.Elsewhere
}

// talker sends messages to the singleton, to entities and to the replicator until the actor system
// ends.
type talker struct {
	clerk, carts, dd *actor.PID
	n                int
}

// talk makes a talker send its next messages.
type talk struct{}

// Receive implements actor.Actor.
func (a *talker) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started, *talk:
		a.n++
		ctx.Send(a.clerk, wrapperspb.String("any"))
		ctx.Send(a.dd, &distributeddata.Unsubscribe[crdt.GCounter]{
			Key: distributeddata.NewKey("any", crdt.GCounter{}), Subscriber: ctx.Self()})
		ctx.Send(a.carts, &sharding.Envelope{ID: strconv.Itoa(a.n % 100),
			Message: wrapperspb.String("any")})
		self, root := ctx.Self(), ctx.ActorSystem().Root
		time.AfterFunc(2*time.Millisecond, func() { root.Send(self, &talk{}) })
	}
}

// wholeCluster runs members with every component.
type wholeCluster struct {
	*testing.T
	specs []whole
	heard chan string
	said  map[string]int
	hosts map[int]int // by member: the number of its active shards that it has said last
}

func newWhole(t *testing.T, n int) *wholeCluster {
	c := &wholeCluster{T: t, heard: make(chan string, 1000), said: map[string]int{},
		hosts: map[int]int{}}
	free := ports.Free(t, 2*n)
	var hosts []string
	for _, port := range free[:n] {
		hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	}
	dir := t.TempDir()
	for i, port := range free[:n] {
		c.specs = append(c.specs, whole{Index: i, Port: free[n+i], Health: port,
			Hosts: hosts, Dir: dir})
	}
	return c
}

func (c *wholeCluster) start(i int) *child.Process {
	spec, err := json.Marshal(c.specs[i])
	require.NoError(c, err)
	return child.Start(c, []string{runEnv + "=whole", wholeEnv + "=" + string(spec)},
		func(line []byte) { c.heard <- strings.TrimSpace(string(line)) })
}

// until waits until each word has been said so often in all.
func (c *wholeCluster) until(want map[string]int) {
	c.Helper()
	late := time.After(patience)
	for {
		missing := false
		for word, n := range want {
			missing = missing || c.said[word] < n
		}
		if !missing {
			return
		}
		select {
		case word := <-c.heard:
			c.hear(word)
		case <-late:
			require.Fail(c, "not in time", "%v, want %v", c.said, want)
		}
	}
}

func (c *wholeCluster) hear(word string) {
	var i, n int
	if _, err := fmt.Sscanf(word, "active %d %d", &i, &n); err == nil {
		c.hosts[i] = n
		return
	}
	c.said[word]++
}

func (c *wholeCluster) stop(p *child.Process) {
	c.Helper()
	require.NoError(c, p.Signal(syscall.SIGTERM))
	require.Equal(c, 0, p.ExitCode(), "%s", p.Stderr())
}

// TestRun_WithoutAFaultNothingIsLoggedAtWarn starts three members at once, replaces each, and stops
// all. The first three send messages until they have stopped, as actors of an application may.
func TestRun_WithoutAFaultNothingIsLoggedAtWarn(t *testing.T) {
	c := newWhole(t, 3)
	var all []*child.Process
	for i := range 3 {
		c.specs[i].Talks = true
		all = append(all, c.start(i))
	}
	c.until(map[string]int{"up": 3, "here": 1})
	for i := range 3 {
		c.specs[i].Talks = false
		c.stop(all[i])
		all = append(all, c.start(i))
		c.until(map[string]int{"up": 4 + i})
	}
	for _, p := range all[3:] {
		require.NoError(t, p.Signal(syscall.SIGTERM))
	}
	for i, p := range all {
		require.Equal(t, 0, p.ExitCode(), "%s", p.Stderr())
		for _, level := range []string{"level=WARN", "level=ERROR"} {
			require.Empty(t, p.With(level), "process %d", i)
		}
	}
}

// TestRun_TheLastMembersTableOfShardsIsNotMissed stops one of two members before shards have homes.
// The other one assigns them, and no other member ever has that table. Nothing is lost with it: the
// next coordinator makes another one.
func TestRun_TheLastMembersTableOfShardsIsNotMissed(t *testing.T) {
	c := newWhole(t, 2)
	c.specs[0].MinMembers, c.specs[1].MinMembers = 2, 2
	first, last := c.start(0), c.start(1)
	c.until(map[string]int{"up": 2})
	c.stop(first)
	c.until(map[string]int{"placed": 1})
	c.stop(last)
}

// TestRun_TheLastMemberAfterACrashStopsInOrder kills one of two members. The program has written
// nothing, so the other one has nothing to hand over.
func TestRun_TheLastMemberAfterACrashStopsInOrder(t *testing.T) {
	c := newWhole(t, 2)
	c.specs[0].MinMembers, c.specs[1].MinMembers = 2, 2
	first, last := c.start(0), c.start(1)
	c.until(map[string]int{"up": 2, "placed": 2})
	first.Kill()
	require.Eventually(t, func() bool { return len(last.With("members dropped")) > 0 }, patience,
		20*time.Millisecond)
	c.stop(last)
}

// TestRun_AMemberStopsWhileNoCoordinatorLives kills the member of the coordinator of shards, and
// stops another one before the next coordinator can begin: nobody moves its shards.
func TestRun_AMemberStopsWhileNoCoordinatorLives(t *testing.T) {
	c := newWhole(t, 3)
	var all []*child.Process
	for i := range 3 {
		c.specs[i].MinMembers = 2
		all = append(all, c.start(i))
	}
	c.until(map[string]int{"up": 3, "placed": 3})
	host := slices.IndexFunc(all, func(p *child.Process) bool {
		for _, line := range p.With("singleton=shard-coordinator-cart") {
			if strings.Contains(line, "to=active") {
				return true
			}
		}
		return false
	})
	require.GreaterOrEqual(t, host, 0)
	all[host].Kill()
	c.stop(all[(host+1)%3])
}

// TestRun_AMemberThatRestartsAtOnceIsLogged kills a member and starts it again before the others
// drop it. What it hosted waits until its leases end: the log of the others says why.
func TestRun_AMemberThatRestartsAtOnceIsLogged(t *testing.T) {
	c := newWhole(t, 3)
	var all []*child.Process
	for i := range 3 {
		all = append(all, c.start(i))
	}
	c.until(map[string]int{"up": 3, "placed": 3})
	all[2].Kill()
	again := c.start(2)
	c.until(map[string]int{"up": 4, "placed": 4})
	for _, p := range all[:2] {
		require.Eventually(t, func() bool { return len(p.With("members replaced")) > 0 }, patience,
			20*time.Millisecond)
		warned := p.With("level=WARN")
		require.Len(t, warned, 1)
		for _, part := range []string{fmt.Sprintf("replaced=127.0.0.1:%d", c.specs[2].Port),
			"shards of cart", "when their leases end, in at most 10s"} {
			require.Contains(t, warned[0], part)
		}
	}
	require.Empty(t, again.With("level=WARN"))
}

// TestRun_MembersThatStopTogetherStopInOrder sends three members SIGTERM at the same time.
func TestRun_MembersThatStopTogetherStopInOrder(t *testing.T) {
	c := newWhole(t, 3)
	var all []*child.Process
	for i := range 3 {
		all = append(all, c.start(i))
	}
	c.until(map[string]int{"up": 3, "here": 1})
	for _, p := range all {
		require.NoError(t, p.Signal(syscall.SIGTERM))
	}
	began := time.Now()
	for i, p := range all {
		require.Equal(t, 0, p.ExitCode(), "%s", p.Stderr())
		t.Logf("process %d has stopped after %v", i, time.Since(began))
		for _, level := range []string{"level=WARN", "level=ERROR"} {
			require.Empty(t, p.With(level), "process %d", i)
		}
	}
}
