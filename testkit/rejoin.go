package testkit

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/lifecycle"
)

// birth is the state kept for future incarnations. Its lock is held while an incarnation is
// created.
type birth struct {
	sync.Mutex
	each         []func(*Member)
	clocks       []*Clock                  // by index
	disks        []*Disk                   // by index
	again        bool                      // not the first incarnation of its process
	incarnations []*lifecycle.Incarnations // of the processes, by index; only with Rejoin
}

// clock returns the clock of the i-th machine.
func (b *birth) clock(c *Cluster, i int) *Clock {
	for len(b.clocks) <= i {
		k := newClock(c, len(b.clocks))
		b.clocks = append(b.clocks, k)
		if c.set.clocks != nil {
			c.set.clocks(k.index, k)
		}
	}
	return b.clocks[i]
}

// disk returns the disk of the i-th machine.
func (b *birth) disk(c *Cluster, i int) *Disk {
	for len(b.disks) <= i {
		d, n := NewDisk(c.seed), len(b.disks)
		d.note = func(format string, args ...any) {
			c.note("disk of machine %d: "+format, append([]any{n}, args...)...)
		}
		b.disks = append(b.disks, d)
	}
	return b.disks[i]
}

// attach makes the system another incarnation of its process, or the first one of a new process.
func (b *birth) attach(system *actor.ActorSystem, clock *Clock, i int) {
	if !b.again {
		clock.boot()
	}
	if len(b.incarnations) > i && b.incarnations[i] != nil {
		b.incarnations[i].Attach(system)
	}
}

// over marks the process at i as ended: no further incarnation follows.
func (b *birth) over(i int) {
	b.Lock()
	defer b.Unlock()
	if i < len(b.incarnations) && b.incarnations[i] != nil {
		b.incarnations[i].End()
	}
}

// end marks all processes as ended.
func (b *birth) end() {
	for i := range b.incarnations {
		b.over(i)
	}
}

// boot starts a new process at the i-th address. No member lists it yet.
func (c *Cluster) boot(i int) *Member {
	c.births.Lock()
	defer c.births.Unlock()
	if c.set.rejoin {
		for len(c.births.incarnations) <= i {
			c.births.incarnations = append(c.births.incarnations, nil)
		}
		c.births.incarnations[i] = lifecycle.NewIncarnations()
	}
	c.sim.Start(address(i))
	return c.Member(i)
}

// follow waits for the end of an incarnation and begins the next one.
func (m *Member) follow() {
	select {
	case <-m.members.Removed():
	case <-m.dead:
		return
	case <-m.c.over:
		return
	}
	m.coming.Store(true)
	defer m.coming.Store(false)
	m.c.note("incarnation of %v ends: %v", m, m.members.Cause())
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = m.shutdown(ctx)
	if !m.gone.CompareAndSwap(false, true) {
		return
	}
	m.c.sim.Crash(m.sim)
	m.kill()
	select {
	case <-time.After(m.c.set.pause):
		m.reborn()
	case <-m.dead:
	case <-m.c.over:
	}
}

// reborn begins the next incarnation of the process.
func (m *Member) reborn() {
	c := m.c
	c.births.Lock()
	defer c.births.Unlock()
	if c.Member(m.Index) != m {
		return // it has been restarted meanwhile
	}
	c.births.again = true
	c.sim.Start(m.Address)
	c.births.again = false
	next := c.Member(m.Index)
	c.note("%v rejoins as %v", m, next)
	c.enter(next)
}

// incarnations returns all incarnations so far.
func (c *Cluster) incarnations() []*Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.all)
}

// Whole returns nil if all members see exactly each other and none is rejoining. Otherwise the
// error lists what each member sees.
func (c *Cluster) Whole() error {
	live := c.Members()
	var told []string
	whole := true
	for _, m := range live {
		var sees []string
		if v := m.members.View(); v != nil && !v.Removed {
			for _, o := range v.Members {
				sees = append(sees, o.ID)
			}
		}
		told = append(told, fmt.Sprintf("%v sees %v", m, sees))
		whole = whole && len(sees) == len(live) && !slices.ContainsFunc(live, func(o *Member) bool {
			return !slices.Contains(sees, o.ID)
		})
	}
	for _, m := range c.incarnations() {
		if m.coming.Load() {
			whole, told = false, append(told, fmt.Sprintf("%v is rejoining", m))
		}
	}
	if whole {
		return nil
	}
	return fmt.Errorf("testkit: views differ: %v", told)
}
