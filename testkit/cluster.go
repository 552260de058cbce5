package testkit

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/simnet"
)

// Cluster is a virtual cluster on virtual time; Run makes it. Its members are production actor systems, their
// PIDs are the same as over remoting, and every message between two members is encoded, carried by a
// network that can be told to misbehave, and decoded. Its methods, and those of its members and links, are
// for the goroutine of the test.
//
// Nothing happens by itself: a member that has crashed stays listed until Member.Expel, as the member
// that replaces it is listed at once. With the options Provider and Rejoin members drop who is out of reach, and
// come back after a split.
type Cluster struct {
	// Leases is the lease store that all members reach, each by its own way: Member.Store.
	Leases *memory.Store

	t      *testing.T
	seed   uint64
	set    settings
	sim    *simnet.Cluster
	start  time.Time
	faults Faults         // of all links
	ending sync.WaitGroup // components of crashed members, and those that rejoin
	over   chan struct{}  // closed when the cluster ends: nobody rejoins any more

	births birth // guards what is made for a new life

	mu struct {
		sync.Mutex
		members []*Member // by index: the last life at that address
		all     []*Member // every life there was
		notes   []string  // what was done to the cluster, and warnings of members
	}
}

func newCluster(t *testing.T, n int, s settings) *Cluster {
	c := &Cluster{t: t, seed: s.seed, set: s, start: time.Now(), Leases: memory.New(), over: make(chan struct{})}
	c.sim = simnet.NewCluster(simnet.Config{
		Options:  simnet.Options{Seed: s.seed, Latency: s.latency, Jitter: s.jitter},
		System:   c.newSystem,
		Setup:    c.begin,
		Provider: s.provider,
	})
	for i := range n {
		c.boot(i)
	}
	c.sim.List(c.sim.Live(), c.sim.Live())
	return c
}

// Seed returns the seed of this run.
func (c *Cluster) Seed() uint64 { return c.seed }

// Member returns the i-th member: what runs at its address now, or did last.
func (c *Cluster) Member(i int) *Member {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < 0 || i >= len(c.mu.members) {
		c.t.Fatalf("no member %d: there are %d", i, len(c.mu.members))
	}
	return c.mu.members[i]
}

// Members returns the members that have not left or crashed, and are not between two lives.
func (c *Cluster) Members() (live []*Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.mu.members {
		if !m.gone.Load() {
			live = append(live, m)
		}
	}
	return live
}

// Join starts another member. It sees all that live, and they see it, at once.
func (c *Cluster) Join() *Member {
	c.mu.Lock()
	i := len(c.mu.members)
	c.mu.Unlock()
	c.note("join %d", i)
	m := c.boot(i)
	c.enter(m)
	for _, o := range c.Members() {
		if o != m && c.faults != (Faults{}) {
			c.sim.Net.Link(o.Address, m.Address).Set(c.faults)
			c.sim.Net.Link(m.Address, o.Address).Set(c.faults)
		}
	}
	return m
}

// Each makes a component at every member: those there are, and every one that joins or restarts from now
// on, before it is listed. produce runs in the goroutine of the test; an error fails it. Components that
// register with package node are stopped with their members.
func Each[T any](c *Cluster, produce func(m *Member) (T, error)) *PerMember[T] {
	c.t.Helper()
	e := &PerMember[T]{c: c, of: map[*Member]T{}}
	add := func(m *Member) {
		c.t.Helper()
		v, err := produce(m)
		if err != nil {
			c.t.Fatalf("component %T of member %d: %v", v, m.Index, err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.of[m] = v
	}
	c.births.Lock()
	defer c.births.Unlock()
	for _, m := range c.Members() {
		add(m)
	}
	c.births.each = append(c.births.each, add)
	return e
}

// PerMember holds one component of every member.
type PerMember[T any] struct {
	c  *Cluster
	mu sync.Mutex
	of map[*Member]T
}

// At returns that of the i-th member, as it is now.
func (e *PerMember[T]) At(i int) T {
	e.c.t.Helper()
	return e.Of(e.c.Member(i))
}

// Of returns that of a member, which may have crashed or been replaced since.
func (e *PerMember[T]) Of(m *Member) T {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[m]
}

// Ready waits until every member has what node.Start waits for, see Member.Ready, and fails if one has not
// within a minute.
func (c *Cluster) Ready() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, m := range c.Members() {
		if err := m.Ready(ctx); err != nil {
			c.t.Fatalf("member %d is not ready: %v", m.Index, err)
		}
	}
}

// Advance lets d of virtual time pass, and then everything happen that is due.
func (c *Cluster) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Settle waits until the cluster is quiet: all mailboxes are empty, and no message or call of the lease
// store is on its way. What waits for a frozen member is not on its way. It fails if that is not so within
// a minute.
func (c *Cluster) Settle() {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		synctest.Wait()
		due, n := c.sim.Net.Flying()
		var calls int64
		for _, m := range c.lives() {
			calls += m.Store.flying.Load()
		}
		switch {
		case n == 0 && calls == 0:
			return
		case time.Now().After(end):
			c.t.Fatalf("not quiet within a minute: %d messages and %d calls of the lease store on their way", n, calls)
			return
		case n == 0:
			due = time.Now().Add(time.Millisecond)
		}
		time.Sleep(time.Until(due))
	}
}

// note keeps what is done to the cluster, for a failure.
func (c *Cluster) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.notes = append(c.mu.notes, fmt.Sprintf("%10s  %s", short(time.Since(c.start)), fmt.Sprintf(format, args...)))
}

// story is what a failure prints.
func (c *Cluster) story() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := fmt.Sprintf("seed %d; to run it again: %s=%d", c.seed, SeedVariable, c.seed)
	if len(c.mu.notes) == 0 {
		return s + "\nNothing was done to the cluster."
	}
	s += "\nWhat was done to the cluster, and its warnings:"
	from := max(0, len(c.mu.notes)-most)
	if from > 0 {
		s += fmt.Sprintf("\n  … %d earlier entries", from)
	}
	for _, n := range c.mu.notes[from:] {
		s += "\n  " + n
	}
	return s
}

func (c *Cluster) newSystem(id string) *actor.ActorSystem {
	system := actor.NewActorSystem(WithLogs(), quickDeadLetters)
	system.ID = id
	bookOf(system).mu.watch = func(l line) {
		if l.level >= slog.LevelWarn {
			c.note("%s at %s: %s", strings.ToLower(l.level.String()), id, l)
		}
	}
	return system
}

// end heals and stops everything.
func (c *Cluster) end() {
	if c.t.Failed() {
		c.t.Log(c.story())
	}
	close(c.over)
	c.ending.Wait()
	c.mu.Lock()
	c.mu.notes = nil
	c.mu.Unlock()
	c.Heal()
	var stops sync.WaitGroup
	for _, m := range c.Members() {
		if m.frozen.Load() {
			m.Thaw()
		}
		stops.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = m.shutdown(ctx)
		})
	}
	stops.Wait()
	c.births.end()
	for _, m := range c.Members() {
		m.kill()
	}
	c.sim.Close()
	c.ending.Wait()
	if types := c.sim.Net.Unserialisable(); len(types) > 0 {
		c.t.Errorf("sent to another member, but no protobuf messages, so remoting would drop them: %v", types)
	}
}

// address is that of the i-th member.
func address(i int) string { return "node-" + strconv.Itoa(i) + ":1" }

func indexOf(address string) int {
	text := strings.TrimSuffix(strings.TrimPrefix(address, "node-"), ":1")
	i, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return i
}
