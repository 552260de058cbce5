//go:build linux

package healtest_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// ofDoubt is how long before the loss of a majority of replicas an acknowledgement must have
// arrived to count: data is promised to survive only while fewer than a majority fail.
const ofDoubt = time.Second

// kill kills a process at once, without a restart.
func (c *members) kill(i int) {
	p := c.live[i]
	p.Kill()
	p.died = bootTime()
	c.killed, c.live[i] = append(c.killed, p), nil
}

// floor returns how many adds of each process every member must have seen after healing: those that
// the process counted itself, or, if it was killed, those that others have seen.
func (c *members) floor() map[string]uint64 {
	floor := map[string]uint64{}
	for _, p := range c.live {
		if p == nil || c.starts[c.index(p)] > 1 {
			continue
		}
		h := p.now()
		for name, n := range h.seen {
			floor[name] = max(floor[name], n)
		}
		if h.last != nil {
			floor[p.Name] = max(floor[p.Name], h.last.Added)
		}
	}
	return floor
}

func (c *members) index(p *process) int { return slices.Index(c.live, p) }

// finish makes one member leave under load, checks the rest, and stops the others. It returns how
// long the first member took to exit.
func (c *members) finish(r *rand.Rand) time.Duration {
	c.t.Helper()
	floor := c.floor()
	x := r.IntN(len(c.live))
	left := c.live[x]
	took, err := left.terminate()
	if err != nil {
		c.t.Error(err)
	}
	c.live[x], c.left = nil, left
	for _, p := range c.live {
		if p != nil {
			p.command("quiet")
		}
	}
	c.await("at rest", []condition{{"load ended", func() string {
		return c.each(0, func(*status) string { return "" }) + c.noisy()
	}}})
	c.await("at rest", []condition{{oneView, func() string { return c.each(0, c.listsAll) }},
		{equalData, func() string { return c.unequal(floor) }}})
	c.checkSet()
	c.stopAll()
	c.checkInstances()
	return took
}

// noisy returns a process whose load has not ended.
func (c *members) noisy() string {
	for _, p := range c.live {
		if p != nil && !p.now().quiet {
			return p.Name + " still adds"
		}
	}
	return ""
}

// unequal compares the data of the members at rest with each other and with the adds.
func (c *members) unequal(floor map[string]uint64) string {
	var first *status
	for _, p := range c.live {
		if p == nil {
			continue
		}
		s := p.now().last
		var all uint64
		for _, n := range s.By {
			all += n
		}
		switch {
		case s.Faulty > 0:
			return fmt.Sprintf("the replicator of %s has raised %d alarms", p.Name, s.Faulty)
		case all != s.Sum:
			return fmt.Sprintf("%s has a counter of %d, which is %d by process: half of an update",
				p.Name, s.Sum, all)
		case first == nil:
			first = s
		case !maps.Equal(s.By, first.By) || s.Set != first.Set:
			return fmt.Sprintf("%s has %v and %d, another %v and %d", p.Name, s.By, s.Set, first.By,
				first.Set)
		}
	}
	for _, p := range append(slices.Clone(c.live), c.left) {
		if p == nil {
			continue
		}
		s := p.now().last
		if n := first.By[p.Name]; n < s.Added || n > s.Added+s.Maybe {
			return fmt.Sprintf("%d adds of %s, which has made %d, and perhaps %d more", n, p.Name,
				s.Added, s.Maybe)
		}
	}
	for name, n := range floor {
		if first.By[name] < n {
			return fmt.Sprintf("%d adds of %s, of which %d were seen", first.By[name], name, n)
		}
	}
	return ""
}

// checkSet checks that the elements acknowledged at Majority are present.
func (c *members) checkSet() {
	c.t.Helper()
	for _, p := range c.live {
		if p == nil {
			continue
		}
		p.command("dump")
		c.await("set of "+p.Name, []condition{{"dump", func() string {
			if len(p.now().dumps) == 0 {
				return "not there"
			}
			return ""
		}}})
		has := map[string]bool{}
		for _, e := range p.now().dumps[0] {
			has[e] = true
		}
		var missing []string
		for _, by := range slices.Concat(c.live, c.killed, []*process{c.left}) {
			if by == nil {
				continue
			}
			for _, a := range by.now().acked {
				if !has[a.Element] && !c.doubtful(a) {
					missing = append(missing, a.Element)
				}
			}
		}
		if len(missing) > 0 {
			c.t.Errorf("%s lacks %d elements that were acknowledged at Majority: %s", p.Name,
				len(missing), strings.Join(missing, " "))
		}
	}
}

// doubtful reports whether a majority was lost soon after an acknowledgement.
func (c *members) doubtful(a acked) bool {
	lost := 0
	for _, p := range c.killed {
		if p.died >= a.At && p.died-a.At < ofDoubt {
			lost++
		}
	}
	return lost >= len(c.live)/2+1
}

// stopAll sends SIGTERM to all running processes.
func (c *members) stopAll() {
	c.t.Helper()
	var all sync.WaitGroup
	errs := make([]error, len(c.live))
	for i, p := range c.live {
		if p != nil {
			all.Go(func() { _, errs[i] = p.terminate() })
		}
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			c.t.Error(err)
		}
		if c.live[i] != nil {
			c.gone = append(c.gone, c.live[i])
			c.live[i] = nil
		}
	}
}

// processOf returns the process of an instance of the singleton.
func processOf(instance string) string {
	process, _, _ := strings.Cut(instance, "#")
	return process
}

// checkInstances checks that no two instances of the singleton were alive at the same time.
func (c *members) checkInstances() {
	c.t.Helper()
	all, err := readInstances(c.instances())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, problem := range twice(all, func(name string) bool {
		return c.frozen[processOf(name)] || *runs == 0 // a busy machine pauses processes too
	}) {
		c.t.Error("two instances: " + problem)
	}
	var answers []answered
	for _, p := range slices.Concat(c.gone, c.killed, []*process{c.left}) {
		answers = append(answers, p.now().answers...)
	}
	for _, problem := range backwards(answers) {
		c.t.Error("token falls: " + problem)
	}
}
