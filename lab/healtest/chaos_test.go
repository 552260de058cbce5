//go:build linux

package healtest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/concord-go/concord/lab/netem"
)

// Where the data of members with accounts is.
const (
	inMemory = "in memory"
	durable  = "durable"
)

const (
	// maxAtOnce is how many faults overlap.
	maxAtOnce = 2
	// exitInChaos is how long a member that is stopped during other faults may take to exit: twice
	// StopTimeout, and the longest that it may be frozen meanwhile.
	exitInChaos = exitCutOff + longestFault
	// longestFault is how long a fault lasts at most.
	longestFault = 20 * time.Second
)

// trouble is a fault that has begun.
type trouble struct {
	what  string
	until time.Time
	links [][2]int
	link  netem.Link // of these links
	end   func()
	still func() bool // it lasts beyond until; may be nil
}

// over ends the trouble.
func (t *trouble) over(c *members) {
	c.t.Logf("%v: end of: %s", bootTime(), t.what)
	if t.end != nil {
		t.end()
	}
}

// chaos lets random faults begin and end for the duration d, two at a time.
func chaos(c *members, r *rand.Rand, d time.Duration) {
	var all []*trouble
	end, next := time.Now().Add(d), time.Now()
	for ; len(all) > 0 || time.Now().Before(end); time.Sleep(poll) {
		now := time.Now()
		before := len(all)
		all = slices.DeleteFunc(all, func(t *trouble) bool {
			done := !now.Before(t.until) && (t.still == nil || !t.still())
			if done {
				t.over(c)
			}
			return done
		})
		if len(all) < before {
			c.poor(all)
		}
		if len(all) == maxAtOnce || now.Before(next) || now.After(end) {
			continue
		}
		if t := c.begin(r); t != nil {
			c.t.Logf("%v: %s", bootTime(), t.what)
			all = append(all, t)
			c.poor(all)
		}
		next = now.Add(time.Duration(r.Int64N(int64(6 * time.Second))))
	}
}

// poor makes the links what the troubles make of them.
func (c *members) poor(all []*trouble) {
	c.net.Heal()
	for _, t := range all {
		for _, l := range t.links {
			c.net.Set(l[0], l[1], t.link)
		}
	}
}

// begin begins a random fault of 0.2 to 20 seconds. It returns nil if that fault is not possible
// now.
func (c *members) begin(r *rand.Rand) *trouble {
	d := time.Duration(0.2 * math.Pow(100, r.Float64()) * float64(time.Second))
	d = d.Round(time.Millisecond)
	x := r.IntN(len(c.live))
	t := &trouble{until: time.Now().Add(d), link: netem.Link{Cut: true}}
	kinds := []func(t *trouble, r *rand.Rand, x int) string{
		c.someCut, c.someCut, c.oneLink, c.oneWay, c.poorLinks,
		c.freezes, c.freezes, c.killsOne, c.stopsOne, c.storeGone,
	}
	if t.what = kinds[r.IntN(len(kinds))](t, r, x); t.what == "" {
		return nil
	}
	t.what += fmt.Sprint(" for ", d)
	return t
}

func (t *trouble) both(i, j int) { t.links = append(t.links, [2]int{i, j}, [2]int{j, i}) }

// someCut cuts off at most half of the members.
func (c *members) someCut(t *trouble, r *rand.Rand, _ int) string {
	order := r.Perm(len(c.live))
	size := 1 + r.IntN(len(order)/2)
	for _, i := range order[:size] {
		for _, j := range order[size:] {
			t.both(i, j)
		}
	}
	return fmt.Sprint(order[:size], " cut off")
}

func (c *members) oneLink(t *trouble, r *rand.Rand, x int) string {
	y := (x + 1 + r.IntN(len(c.live)-1)) % len(c.live)
	t.both(x, y)
	return fmt.Sprint(x, " and ", y, " cut from each other")
}

func (c *members) oneWay(t *trouble, r *rand.Rand, x int) string {
	out := r.IntN(2) == 0
	t.links = c.allLinks(x, out)
	return fmt.Sprintf("%d cut off one way, out: %v,", x, out)
}

func (c *members) poorLinks(t *trouble, r *rand.Rand, x int) string {
	delay := func() time.Duration { return time.Duration(r.Int64N(int64(200 * time.Millisecond))) }
	t.link = netem.Link{Delay: delay(), Jitter: delay(), Loss: r.Float64() / 3,
		Duplicate: r.Float64() / 3, Corrupt: r.Float64() / 100}
	if r.IntN(2) == 0 {
		t.link.Rate = 20_000
	}
	for i := range c.live {
		if i != x {
			t.both(x, i)
		}
	}
	return fmt.Sprintf("links of %d %+v", x, t.link)
}

func (c *members) freezes(t *trouble, _ *rand.Rand, x int) string {
	p := c.live[x]
	if p == nil || p.Ended() {
		return ""
	}
	c.frozen[p.Name] = true
	p.signal(syscall.SIGSTOP)
	t.end = func() { p.signal(syscall.SIGCONT) }
	return p.Name + " frozen"
}

// killsOne kills one process. Another takes its place.
func (c *members) killsOne(t *trouble, _ *rand.Rand, x int) string {
	if !c.mayEnd() {
		return ""
	}
	name := c.live[x].Name
	c.kill(x)
	t.end = func() { c.launch(x) }
	return name + " killed, and away"
}

// stopsOne stops one process with SIGTERM. Another takes its place.
func (c *members) stopsOne(t *trouble, _ *rand.Rand, x int) string {
	if !c.mayEnd() {
		return ""
	}
	p := c.live[x]
	p.signal(syscall.SIGTERM)
	p.died = bootTime()
	c.killed, c.live[x] = append(c.killed, p), nil
	t.still = func() bool {
		if !p.Ended() && time.Since(t.until) > exitInChaos {
			c.t.Errorf("%s has not exited %v after SIGTERM", p.Name, exitInChaos)
			p.Kill()
		}
		return !p.Ended()
	}
	t.end = func() { c.launch(x) }
	return p.Name + " stopped, and away"
}

// storeGone hides the lease store from one member, and by chance from others.
func (c *members) storeGone(t *trouble, r *rand.Rand, x int) string {
	var without []int
	for i := range c.live {
		if i != x && r.IntN(2) == 0 {
			continue
		}
		if err := os.WriteFile(c.silent(i), nil, 0o600); err != nil {
			c.t.Fatal(err)
		}
		without = append(without, i)
	}
	t.end = func() {
		for _, i := range without {
			_ = os.Remove(c.silent(i))
		}
	}
	return fmt.Sprint(without, " do not reach the lease store")
}

// mayEnd reports whether a process may end without the loss of what a majority has acknowledged:
// every other one runs, and those that were started again have been ready.
func (c *members) mayEnd() bool {
	for _, p := range c.live {
		if p == nil || p.Ended() {
			return false
		}
		if h := p.now(); h.last == nil || h.last.NotReady != "" && c.starts[c.index(p)] > 1 {
			return false
		}
	}
	return true
}

// everyAccount is the name of a condition: every account has acknowledged a deposit.
const everyAccount = "every account answering"

func (c *members) unanswered(after time.Duration) string {
	has := map[string]bool{}
	for _, p := range c.live {
		if p == nil {
			continue
		}
		for _, d := range p.now().deposits {
			if d.At > after {
				has[d.Account] = true
			}
		}
	}
	for i := range accounts + 1 {
		if !has[nameOf(i)] {
			return nameOf(i) + " has acknowledged nothing"
		}
	}
	return ""
}

// numbersOnce checks that no account has acknowledged two deposits under one number.
func numbersOnce(c *members) {
	by, n := map[string]string{}, 0
	for _, p := range slices.Concat(c.gone, c.killed, []*process{c.left}) {
		for _, d := range p.now().deposits {
			n++
			at := fmt.Sprint(d.Account, " ", d.Number)
			if other, ok := by[at]; ok && other != d.ID {
				c.t.Errorf("deposit %s has acknowledged %s and %s", at, other, d.ID)
			}
			by[at] = d.ID
		}
	}
	c.t.Logf("%d deposits", n)
	if n == 0 {
		c.t.Error("no deposit was acknowledged")
	}
}
