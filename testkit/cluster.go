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

// Cluster is a virtual cluster on virtual time, created by Run. Its members are production actor
// systems with the same PIDs as over remoting. Every message between two members is encoded,
// carried by a network with configurable faults, and decoded. The methods of Cluster, and those of
// its members and links, must be called from the goroutine of the test.
//
// Membership does not change by itself: a crashed member stays listed until Member.Expel, or until
// it is replaced. With the options Provider and Rejoin, members drop unreachable members and rejoin
// after a split.
type Cluster struct {
	// Leases is the lease store shared by all members. Each member accesses it through
	// Member.Store.
	Leases memory.Store

	t      *testing.T
	seed   uint64
	set    settings
	sim    *simnet.Cluster
	start  time.Time
	faults Faults         // of all links
	ending sync.WaitGroup // components of crashed members, and rejoining members
	over   chan struct{}  // closed when the cluster ends; members no longer rejoin

	births birth // guards the state that is set up for a new incarnation

	mu struct {
		sync.Mutex
		members []*Member // by index: the latest incarnation at that address
		all     []*Member // every incarnation so far
		notes   []string  // changes made to the cluster, and warnings of members
	}
}

func newCluster(t *testing.T, n int, s settings) *Cluster {
	c := &Cluster{t: t, seed: s.seed, set: s, start: time.Now(), Leases: memory.New(),
		over: make(chan struct{})}
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

// Member returns the i-th member: the current or latest incarnation at its address.
func (c *Cluster) Member(i int) *Member {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < 0 || i >= len(c.mu.members) {
		c.t.Fatalf("no member %d: there are %d", i, len(c.mu.members))
	}
	return c.mu.members[i]
}

// Members returns the members that have not left or crashed, except those that are rejoining.
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

// Join starts another member. It and all live members list each other at once.
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

// Each creates a component at every member: at the current members, and at every member that joins
// or restarts later, before it is listed. produce runs in the goroutine of the test; an error fails
// the test. Components that register with package node are stopped with their members.
func Each[T any](c *Cluster, produce func(m *Member) (T, error)) *PerMember[T] {
	c.t.Helper()
	e := &PerMember[T]{c: c, of: map[*Member]T{}}
	add := func(m *Member) {
		c.t.Helper()
		v, err := produce(m)
		if err != nil {
			c.t.Fatalf("component %T of member %d: %v", v, m.Index, err)
		}
		if r, ok := any(v).(readier); ok {
			m.await = append(m.await, r)
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

// readier is a component that becomes ready some time after its member, such as a Replicator.
type readier interface {
	Ready(ctx context.Context) error
}

// PerMember holds one component per member.
type PerMember[T any] struct {
	c  *Cluster
	mu sync.Mutex
	of map[*Member]T
}

// At returns the component of the i-th member, in its current incarnation.
func (e *PerMember[T]) At(i int) T {
	e.c.t.Helper()
	return e.Of(e.c.Member(i))
}

// Of returns the component of a member, which may have crashed or been replaced since.
func (e *PerMember[T]) Of(m *Member) T {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[m]
}

// Ready waits until every member and its components are ready, see Member.Ready. It fails the test
// if one is not ready within a minute.
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

// Advance advances virtual time by d and waits until everything that is due has run.
func (c *Cluster) Advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Settle waits until the cluster is idle: all mailboxes are empty, and no message or call of the
// lease store is in flight. Messages and calls held for a frozen member do not count as in flight.
// Settle fails if the cluster is not idle within a minute.
func (c *Cluster) Settle() {
	c.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		synctest.Wait()
		due, n := c.sim.Net.Flying()
		var calls int64
		for _, m := range c.incarnations() {
			calls += m.Store.flying.Load()
		}
		switch {
		case n == 0 && calls == 0:
			return
		case time.Now().After(end):
			c.t.Fatalf("not quiet within a minute: %d messages and %d calls of the lease store on their way",
				n, calls)
			return
		case n == 0:
			due = time.Now().Add(time.Millisecond)
		}
		time.Sleep(time.Until(due))
	}
}

// note records a change made to the cluster, for the failure report.
func (c *Cluster) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.notes = append(c.mu.notes,
		fmt.Sprintf("%10s  %s", short(time.Since(c.start)), fmt.Sprintf(format, args...)))
}

// story returns the failure report.
func (c *Cluster) story() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := fmt.Sprintf("seed %d; to run it again: %s=%d", c.seed, seedVariable, c.seed)
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
	bookOf(system).mu.fail = func(text string) { c.note("at %s: %s", id, text) }
	supervise(system)
	return system
}

// end heals the cluster and stops everything.
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
		m.disk.Crash() // commits that still wait
	}
	c.sim.Close()
	c.ending.Wait()
	if types := c.sim.Net.Unserialisable(); len(types) > 0 {
		c.t.Errorf("sent to another member, but no protobuf messages, so remoting would drop them: %v",
			types)
	}
}

// address returns the address of the i-th member.
func address(i int) string { return "node-" + strconv.Itoa(i) + ":1" }

func indexOf(address string) int {
	text := strings.TrimSuffix(strings.TrimPrefix(address, "node-"), ":1")
	i, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return i
}
