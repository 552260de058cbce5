//go:build linux

package healtest_test

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/concord-go/concord/lab/netem"
)

// fault causes a fault for the duration d, and then repairs it.
type fault func(c *members, r *rand.Rand, d time.Duration)

// apart cuts groups of members off from each other, in both directions, and all but one of the
// groups from the provider's server.
func apart(groups func(order []int) [][]int) fault {
	return func(c *members, r *rand.Rand, d time.Duration) {
		g := groups(r.Perm(len(c.live)))
		if c.server != nil {
			x := largest(g)
			if len(g) > 0 && len(g[x]) <= len(c.live)/2 {
				// no group has a majority: any may keep it
				x = r.IntN(len(g))
			}
			g[x] = append(g[x], c.server.node)
		}
		for a, some := range g {
			for b, others := range g {
				if a == b {
					continue
				}
				for _, i := range some {
					for _, j := range others {
						c.net.Set(i, j, netem.Link{Cut: true})
					}
				}
			}
		}
		c.t.Logf("%v cut from each other for %v", g, d)
		time.Sleep(d)
		c.net.Heal()
	}
}

func largest(groups [][]int) (at int) {
	for i, g := range groups {
		if len(g) > len(groups[at]) {
			at = i
		}
	}
	return at
}

// sizes forms groups of the given sizes; the last one takes the rest.
func sizes(n ...int) func(order []int) [][]int {
	return func(order []int) (groups [][]int) {
		for _, k := range n {
			groups = append(groups, append([]int(nil), order[:k]...))
			order = order[k:]
		}
		return append(groups, append([]int(nil), order...))
	}
}

// half forms two groups, the first of which is not larger.
func half(order []int) [][]int { return sizes(len(order) / 2)(order) }

// cutLink cuts one link between two members.
func cutLink(c *members, r *rand.Rand, d time.Duration) {
	o := r.Perm(len(c.live))
	c.net.Set(o[0], o[1], netem.Link{Cut: true})
	c.net.Set(o[1], o[0], netem.Link{Cut: true})
	c.t.Logf("link between %d and %d cut for %v", o[0], o[1], d)
	time.Sleep(d)
	c.net.Heal()
}

// cutOneWay cuts all links out of one member, or all links into it.
func cutOneWay(c *members, r *rand.Rand, d time.Duration) {
	x, out := r.IntN(len(c.live)), r.IntN(2) == 0
	for _, l := range c.allLinks(x, out) {
		c.net.Set(l[0], l[1], netem.Link{Cut: true})
	}
	c.t.Logf("cut for %v: %d, out: %v", d, x, out)
	time.Sleep(d)
	c.net.Heal()
}

// allLinks returns the links from a member to all others, or those to it.
func (c *members) allLinks(x int, out bool) (links [][2]int) {
	for i := range c.live {
		switch {
		case i == x:
		case out:
			links = append(links, [2]int{x, i})
		default:
			links = append(links, [2]int{i, x})
		}
	}
	return links
}

// cutProvider cuts one member off from the provider's server only.
func cutProvider(c *members, r *rand.Rand, d time.Duration) {
	x := r.IntN(len(c.live))
	c.net.Set(x, c.server.node, netem.Link{Cut: true})
	c.net.Set(c.server.node, x, netem.Link{Cut: true})
	c.t.Logf("%d cut off from the provider's server for %v", x, d)
	time.Sleep(d)
	c.net.Heal()
}

// providerDown kills the provider's server and restarts it.
func providerDown(c *members, _ *rand.Rand, d time.Duration) {
	c.server.kill()
	c.t.Logf("the provider's server is down for %v", d)
	time.Sleep(d)
	c.server.start()
}

// cutAgain cuts the cluster in two repeatedly, each time differently and for a fifth of the
// duration, with less time in between than it needs to heal.
func cutAgain(c *members, r *rand.Rand, d time.Duration) {
	for i := range 5 {
		apart(sizes(1+r.IntN(len(c.live)/2)))(c, r, d/5)
		if i < 4 {
			time.Sleep(time.Duration(r.Int64N(int64(4 * time.Second))))
		}
	}
}

// cutAndKill cuts one member off, and kills another one while the cluster heals.
func cutAndKill(c *members, r *rand.Rand, d time.Duration) {
	apart(single)(c, r, d)
	time.Sleep(time.Duration(r.Int64N(int64(5 * time.Second))))
	kill(one)(c, r, time.Second)
}

// killAndStop kills one member, and stops another one with SIGTERM a while later, in whose place a
// process starts and must reach a majority before the first is back.
func killAndStop(c *members, r *rand.Rand, d time.Duration) {
	o := r.Perm(len(c.live))
	c.kill(o[0])
	time.Sleep(d)
	p := c.live[o[1]]
	took, err := p.terminate()
	c.t.Logf("%d killed, %d stopped %v later, in %v: %v", o[0], o[1], d, took, err)
	if err != nil {
		c.t.Error(err)
	}
	p.died = bootTime()
	c.killed, c.live[o[1]] = append(c.killed, p), nil
	c.launch(o[1])
	c.await("with one missing", []condition{{"an update at a majority", func() string {
		if len(c.live[o[1]].now().acked) == 0 {
			return "none is acknowledged to " + c.live[o[1]].Name
		}
		return ""
	}}})
	c.launch(o[0])
}

// cutAndStop cuts one member off and stops it with SIGTERM before the cut ends; another process
// takes its place. The adds that it made while alone are lost. It may report that with its exit
// status, but must not take longer to exit.
func cutAndStop(c *members, r *rand.Rand, d time.Duration) {
	x := r.IntN(len(c.live))
	c.net.Isolate(x)
	time.Sleep(d)
	p := c.live[x]
	took, err := p.terminate()
	c.t.Logf("%d cut off for %v, and stopped in %v: %v", x, d, took, err)
	if !p.Ended() || p.ExitCode() != 0 && p.ExitCode() != 4 {
		c.t.Fatal(err)
	}
	if took > exitCutOff {
		c.t.Errorf("a member that was cut off took %v to exit, want %v at most", took, exitCutOff)
	}
	p.died = bootTime()
	c.killed, c.live[x] = append(c.killed, p), nil
	c.net.Heal()
	c.launch(x)
}

// exitCutOff is twice StopTimeout, for a busy machine.
const exitCutOff = 20 * time.Second

// freeze stops count processes with SIGSTOP.
func freeze(count func(n int) int) fault {
	return func(c *members, r *rand.Rand, d time.Duration) {
		some := r.Perm(len(c.live))[:count(len(c.live))]
		for _, i := range some {
			c.frozen[c.live[i].Name] = true
			c.live[i].signal(syscall.SIGSTOP)
		}
		c.t.Logf("%v frozen for %v", some, d)
		time.Sleep(d)
		for _, i := range some {
			c.live[i].signal(syscall.SIGCONT)
		}
	}
}

// kill kills count processes at once with SIGKILL, and starts others in their place after a while.
func kill(count func(n int) int) fault {
	return func(c *members, r *rand.Rand, d time.Duration) {
		some := r.Perm(len(c.live))[:count(len(c.live))]
		for _, i := range some {
			c.kill(i)
		}
		c.t.Logf("%v killed, others in their place after %v", some, d)
		time.Sleep(d)
		for _, i := range some {
			c.launch(i)
		}
	}
}

// killRolling kills one process after the other. Each has been back for a while before the next one
// is killed.
func killRolling(c *members, r *rand.Rand, d time.Duration) {
	order := r.Perm(len(c.live))
	c.t.Logf("%v killed one after the other, each away for %v", order, d/4)
	for _, i := range order {
		c.await("before the next is killed", whole(c, 0, nil))
		time.Sleep(time.Second)
		c.kill(i)
		time.Sleep(d / 4)
		c.launch(i)
	}
}

func one(int) int            { return 1 }
func majority(n int) int     { return n/2 + 1 }
func everyone(n int) int     { return n }
func allButOne(n int) int    { return n - 1 }
func single(o []int) [][]int { return sizes(1)(o) }
