package testkit

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/simnet"
	"github.com/concord-go/concord/internal/timer"
)

// Member is one process of a cluster, from its start to its end. After a restart there is another
// Member at the same index and address. With Rejoin, so there is after each incarnation of the
// process.
type Member struct {
	Index   int
	ID      string
	Address string
	Roles   []string
	System  *actor.ActorSystem
	// Session is the member's own session on the lease store of the cluster. It uses Store and the
	// clock of the member. A graceful stop closes it.
	Session *coordination.Session
	Store   *Store

	c       *Cluster
	sim     *simnet.Member
	clock   *Clock
	disk    *Disk
	gone    atomic.Bool
	frozen  atomic.Bool
	dead    chan struct{} // closed when the process has crashed or left; no incarnation follows
	die     func()        // closes dead
	coming  atomic.Bool   // the incarnation has ended, and another one will begin
	await   []readier     // components made by Each
	members *membership.Service
}

// begin creates the member of a process whose system exists. No member lists it yet.
func (c *Cluster) begin(sim *simnet.Member) {
	i := indexOf(sim.Address)
	if c.set.roles != nil {
		sim.Roles = c.set.roles(i)
	}
	if c.set.versions != nil {
		sim.Version = c.set.versions(i)
	}
	clock := c.births.clock(c, i)
	c.births.attach(sim.System, clock, i)
	timer.Attach(sim.System, timer.Host{Clock: clock})
	m := &Member{
		Index: i, ID: sim.ID, Address: sim.Address, Roles: sim.Roles, System: sim.System, c: c,
		sim: sim, dead: make(chan struct{}),
		clock: clock, disk: c.births.disk(c, i), Store: NewStore(c.Leases),
		members: membership.Attach(sim.System),
	}
	m.die = sync.OnceFunc(func() { close(m.dead) })
	m.Store.note = func(format string, args ...any) {
		c.note("lease store of %v: "+format, append([]any{m}, args...)...)
	}
	cfg := c.set.leases
	cfg.Owner, cfg.Logger, cfg.Clock = m.ID, m.System.Logger(), clock
	session, err := coordination.Open(c.set.store(m.Store), cfg)
	if err == nil {
		_, err = lifecycle.OnStop(m.System, lifecycle.Leases, "session", session.Close)
	}
	if err != nil {
		c.t.Fatalf("member %d: %v", i, err)
	}
	m.Session = session
	c.mu.Lock()
	if i == len(c.mu.members) {
		c.mu.members = append(c.mu.members, m)
	} else {
		c.mu.members[i] = m
	}
	c.mu.all = append(c.mu.all, m)
	c.mu.Unlock()
	for _, f := range c.births.each {
		f(m)
	}
	if c.set.rejoin {
		c.ending.Go(m.follow)
	}
}

// enter lists a new member everywhere, replacing an earlier one at its address. With the option
// Provider, it lists the member wherever its provider reaches.
func (c *Cluster) enter(m *Member) {
	if c.set.provider != nil {
		c.sim.List([]*simnet.Member{m.sim}, []*simnet.Member{m.sim})
		c.sim.Look()
		return
	}
	live := c.sim.Live()
	c.sim.List([]*simnet.Member{m.sim}, live)
	c.sim.Replace(live, m.sim)
}

// Disk returns the disk of the member's machine. A restarted member finds the synced data on it.
// Leave and Crash close the stores that are open on it.
func (m *Member) Disk() *Disk { return m.disk }

// Clock returns the clock of the member's machine, for code that the test builds on it and for
// SetRate and Jump.
func (m *Member) Clock() *Clock { return m.clock }

// String returns the member id.
func (m *Member) String() string { return m.ID }

// Gone reports whether the member has left or crashed, or its incarnation has ended and its process
// begins another one.
func (m *Member) Gone() bool { return m.gone.Load() }

// Ready waits as node.Start does, until the member is listed, its age is known, and its components
// can be used. Then it waits for the method Ready(ctx) of each component that Each has made: a
// Replicator counts in quorums only from then on, so until then majority writes fail behind a
// partition. A component whose Ready returns an error at once, such as a Replicator without
// MinMembers, has nothing to wait for. Ready returns the error of ctx, or of a component.
func (m *Member) Ready(ctx context.Context) error {
	if err := m.members.Ready(ctx); err != nil {
		return err
	}
	if err := lifecycle.Of(m.System).Start(ctx); err != nil {
		return err
	}
	for _, r := range m.await {
		if err := r.Ready(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// Leave stops the member gracefully, as node.Shutdown does: components in their phases, the
// session, then membership. Then its actors stop, and the others remove it from their lists. The
// error is that of node.Shutdown.
func (m *Member) Leave(ctx context.Context) error {
	m.c.note("leave %v", m)
	m.die()
	err := m.shutdown(ctx)
	m.gone.Store(true)
	m.c.births.over(m.Index)
	m.c.sim.Leave(m.sim)
	m.kill()
	m.disk.Crash()
	return err
}

func (m *Member) shutdown(ctx context.Context) error {
	return lifecycle.Of(m.System).Stop(ctx, func(ctx context.Context) error {
		m.members.Stop()
		select {
		case <-m.members.Stopped():
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// Crash stops the member abruptly: from now on it sends nothing to other members or the lease
// store. Its actors are stopped, since an actor cannot be removed otherwise: they handle Stopping
// and Stopped, but nothing they send arrives. Goroutines started by the test continue. The others
// list the member until Expel or Restart.
func (m *Member) Crash() {
	m.die()
	if !m.gone.CompareAndSwap(false, true) {
		return
	}
	m.c.note("crash %v", m)
	m.c.births.over(m.Index)
	m.Store.die()
	m.disk.Crash()
	m.disk.thaw()
	m.clock.suspend(false)
	m.c.sim.Crash(m.sim)
	m.kill()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	m.c.ending.Go(func() { _ = m.shutdown(ended) })
}

// kill stops all actors.
func (m *Member) kill() {
	m.members.Stop()
	pids := map[string]*actor.ActorProcess{}
	for _, bucket := range m.System.ProcessRegistry.LocalPIDs.LocalPIDs {
		bucket.IterCb(func(id string, v any) {
			if p, ok := v.(*actor.ActorProcess); ok {
				pids[id] = p
			}
		})
	}
	for _, id := range sortedKeys(pids) {
		pids[id].Stop(actor.NewPID(m.Address, id))
	}
}

// Restart starts a new process at the address; it crashes the member first if it is running. The
// new process has a new id and empty memory. The others list it in place of the old one.
func (m *Member) Restart() *Member {
	m.c.t.Helper()
	if now := m.c.Member(m.Index); now != m {
		m.c.t.Fatalf("member %v has been replaced by %v", m, now)
	}
	m.Crash()
	next := m.c.boot(m.Index)
	m.c.note("restart %v as %v", m, next)
	m.c.enter(next)
	return next
}

// Freeze holds all messages to and from the member, its calls of the lease store, and the
// notifications of its provider until Thaw, as if the network and the process stood still. Its
// goroutines and timers continue to run, since a process cannot be stopped from inside. The member
// therefore notices the passing time, which a paused process would notice only afterwards. See
// Suspend.
func (m *Member) Freeze() {
	m.c.note("freeze %v", m)
	m.frozen.Store(true)
	m.Store.freeze()
	m.disk.freeze()
	m.c.sim.Freeze(m.sim)
}

// Suspend is like Freeze, but also stops the clock until Thaw. It models a pause that no clock of
// the machine can see, as when a virtual machine is paused or migrated. Code that uses Member.Clock
// neither runs nor notices the pause. Actors still handle messages sent by the test itself, as if
// at the last moment before the pause.
func (m *Member) Suspend() {
	m.c.note("suspend %v", m)
	m.frozen.Store(true)
	m.clock.suspend(true)
	m.Store.freeze()
	m.disk.freeze()
	m.c.sim.Freeze(m.sim)
}

// Thaw ends Freeze and Suspend. It delivers everything that was held, in order of arrival.
func (m *Member) Thaw() {
	m.c.note("thaw %v", m)
	m.frozen.Store(false)
	m.clock.suspend(false)
	m.c.sim.Thaw(m.sim)
	m.Store.thaw()
	m.disk.thaw()
}

// Expel makes all other members remove the member from their lists, as providers do with a silent
// member. If the member is alive, it still lists and reaches the others.
func (m *Member) Expel() {
	m.c.note("expel %v", m)
	m.c.sim.Expel(m.sim)
}

// Lists makes the provider of only this member list others, so that views can differ.
func (m *Member) Lists(others ...*Member) {
	m.c.note("%v lists %v", m, others)
	m.c.sim.List([]*simnet.Member{m.sim}, sims(others))
}

// Drops makes the provider of only this member remove others from its list.
func (m *Member) Drops(others ...*Member) {
	m.c.note("%v drops %v", m, others)
	m.c.sim.Unlist([]*simnet.Member{m.sim}, sims(others))
}

// Sees reports whether the components of this member see the other one.
func (m *Member) Sees(other *Member) bool {
	v := m.members.View()
	if v == nil {
		return false
	}
	_, ok := v.Find(other.ID)
	return ok
}

func sims(members []*Member) (out []*simnet.Member) {
	for _, m := range members {
		out = append(out, m.sim)
	}
	return out
}
