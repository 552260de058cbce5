package datatest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
	"time"
)

var replacements = flag.Int("replacements", 0,
	"how many members each cluster replaces while clients write; 0: a few, of two clusters")

// rolling is a cluster whose members are replaced one after the other.
type rolling struct {
	n      int
	least  int  // MinMembers
	named  bool // a process takes the name of the one it replaces; otherwise it is a new member
	sample bool // also played without -replacements
}

func (r rolling) String() string {
	if r.named {
		return fmt.Sprint(r.n, " members, names that stay")
	}
	return fmt.Sprint(r.n, " members, new names")
}

// TestReal_RollingReplacement replaces the members of a cluster one after the other, each by a
// process at another address, after an orderly stop or SIGKILL. Where the name of a killed member
// does not come back, an operator forgets it, or ForgetAfter does. Meanwhile clients write and read
// at a majority. No read misses what was acknowledged before it began, nothing acknowledged is lost
// in the end, and after each replacement every client writes again.
func TestReal_RollingReplacement(t *testing.T) {
	for _, r := range []rolling{{3, 3, false, true}, {5, 4, true, true}, {5, 4, false, false},
		{3, 3, true, false}} {
		if r.sample || *replacements > 0 {
			t.Run(r.String(), r.play)
		}
	}
}

// forgetAfter is longer than a replacement takes on an idle machine.
const forgetAfter = 2 * time.Second

func (r rolling) play(t *testing.T) {
	c := &replacing{rolling: r, members: &members{t: t},
		random: rand.New(rand.NewPCG(uint64(r.n), 1))}
	for i := range r.n {
		c.specs = append(c.specs, c.spec(i))
	}
	c.begin()
	c.load = startLoad(t, c.running())
	rounds := *replacements
	if rounds == 0 {
		rounds = len(ways)
	}
	for round := range rounds {
		began := time.Now()
		c.replace(ways[round%len(ways)])
		c.longest = max(c.longest, time.Since(began))
		if t.Failed() {
			return
		}
	}
	c.load.end()
	c.load.whole(c.running())
	t.Logf("%d replaced, the slowest in %v; %v", rounds, c.longest.Round(time.Millisecond), c.load)
}

// replacing is a rolling replacement in progress. There is one more place than members.
type replacing struct {
	rolling
	*members
	load    *load
	random  *rand.Rand
	longest time.Duration
}

func (c *replacing) spec(i int) spec {
	s := spec{Host: "127.0.0.1", MinMembers: c.least, ForgetAfter: forgetAfter}
	if c.named {
		s.Member = fmt.Sprint("member-", i)
	}
	return s
}

// way is how a member is replaced.
type way uint8

const (
	stopped way = iota // it leaves in order, and then another one joins
	// forgotten: it is killed, another one joins, and an operator has the first one forgotten.
	forgotten
	surged   // another one joins, and then it leaves in order
	vanished // it is killed, another one joins, and ForgetAfter does the rest
)

var ways = []way{stopped, forgotten, surged, vanished}

// replace replaces one member, and waits until the cluster is whole and every client has written.
func (c *replacing) replace(how way) {
	c.t.Helper()
	i := c.random.IntN(len(c.live))
	for c.live[i] == nil {
		i = c.random.IntN(len(c.live))
	}
	next, name := c.specs[i], c.name(i)
	if how == surged && !c.named { // of two processes of one name the first would no longer count
		c.come(next)
	}
	switch how {
	case stopped, surged:
		c.leave(i)
	default:
		c.kill(i)
	}
	if how != surged || c.named {
		c.come(next)
	}
	c.load.use(c.running())
	c.eventually(func() string {
		if how == forgotten && !c.named {
			c.forget(name)
		}
		return c.torn()
	})
	before := c.load.written()
	c.eventually(func() string { return c.load.since(before) })
}

// name returns the name under which the i-th member is counted.
func (c *replacing) name(i int) string {
	if c.named {
		return c.specs[i].Member
	}
	return net.JoinHostPort(c.list[i].Host, strconv.Itoa(c.list[i].Port))
}

// come starts a process at a free place, and waits until it counts.
func (c *replacing) come(s spec) {
	c.t.Helper()
	for i, p := range c.live {
		if p == nil {
			c.specs[i] = s
			c.restart(i)
			return
		}
	}
	c.restart(c.place(s))
}

// leave makes a member stop in order. Its clients have switched to others before.
func (c *replacing) leave(i int) {
	c.t.Helper()
	p := c.live[i]
	c.live[i] = nil
	c.load.use(c.running())
	if err := p.leave(); err != nil {
		p.Kill()
		c.t.Errorf("member %d did not leave in order: %v\n%s", i, err, p.Stderr())
	}
	c.check(i, p)
	c.tell()
}

// forget asks a running member, as an operator would, to forget a dead one. Another member may have
// done so already.
func (c *replacing) forget(name string) {
	p := c.running()[0]
	_, _ = p.call(command{Do: "forget", Member: name, Within: time.Second})
}

// torn describes what a member still lacks for a cluster in which each counts exactly the running
// members.
func (c *replacing) torn() string {
	for i, p := range c.live {
		if p == nil {
			continue
		}
		a, err := p.call(command{Do: "status", Within: patience})
		if err != nil {
			return fmt.Sprintf("member %d: %v", i, err)
		}
		if s := a.Status; !s.Ready || s.Members != c.n || s.Counted != c.n || len(s.Missing) > 0 {
			return fmt.Sprintf(
				"member %d: ready %t (%s), sees %d, counts %d, of which are missing: %v", i,
				s.Ready, s.NotReady, s.Members, s.Counted, s.Missing)
		}
	}
	return ""
}
