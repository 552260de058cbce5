//go:build linux

package healtest_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/lab/netem"
)

// outage is a fault that takes something from the members, and the side that should serve.
type outage struct {
	name  string
	n     int           // members
	store string        // which members reach the lease store: all, majority, minority, nobody
	begin time.Duration // of the fault, after the processes were started
	goal  time.Duration // until the side that should serve answers for everything
}

func (o outage) String() string {
	return fmt.Sprintf("outage/%s/%d/store=%s/after=%v", o.name, o.n, o.store, o.begin)
}

const (
	// defaultTTL is the TTL of leases by default.
	defaultTTL = 8 * time.Second
	// goalServed is the goal for the time from a fault, or from the end of the leases that it
	// leaves behind, until everything is answered, and goalWhole that from the end of the fault
	// until there is one view.
	goalServed = 5 * time.Second
	goalWhole  = 5 * time.Second
	// goalStopped is the goal for the time that a whole cluster takes to stop.
	goalStopped = 2 * time.Second
)

// outagesAll returns every case.
func outagesAll() (all []outage) {
	quick, slow := goalServed, defaultTTL+goalServed
	add := func(name string, n int, store string, begin, goal time.Duration) {
		all = append(all, outage{name, n, store, begin, goal})
	}
	for _, begin := range []time.Duration{0, 1, 3, 10, 60} {
		begin *= time.Second
		for _, n := range []int{3, 5} {
			for _, name := range []string{"cut-host", "cut-other", "cut-one-way"} {
				add(name, n, "all", begin, quick)
			}
			if n == 5 {
				add("cut-two", n, "all", begin, quick)
			}
			for _, name := range []string{"crash-host", "crash-most"} {
				add(name, n, "all", begin, slow)
			}
			if begin < 10*time.Second { // whether there are leases yet is up to chance
				continue
			}
			for _, store := range []string{"majority", "minority"} {
				for _, name := range []string{"cut-host", "cut-other"} {
					add(name, n, store, begin, slow)
				}
			}
			add("cut-host", n, "nobody", begin, quick)
		}
		add("cut-half", 4, "all", begin, quick)
	}
	add("start", 20, "all", 0, 15*time.Second) // no fault: until all are ready
	for _, n := range []int{3, 5} {
		add("stop", n, "all", 10*time.Second, goalStopped) // until all have exited
	}
	return all
}

// TestOutage cuts off or kills members of clusters with default settings, and measures how long it
// takes until the side that should serve answers for every entity and for the singleton, as clients
// at each of its members see it. Meanwhile no other side may serve, /readyz must say so, and after
// the end of the fault there must be one view again.
func TestOutage(t *testing.T) {
	if err := netem.Possible(); err != nil && os.Getenv("CI") != "true" {
		t.Skipf("NOT TESTED: netem needs root on Linux with /dev/net/tun: %v", err)
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		t.Fatalf("-case: %v", err)
	}
	all := outagesAll()
	if *runs == 0 && *only == "" {
		all = []outage{{"cut-host", 3, "all", 3 * time.Second, goalServed}}
	}
	all = slices.DeleteFunc(all, func(o outage) bool {
		return !match.MatchString(o.String()) || *size != 0 && *size != o.n
	})
	results := make([]outcomes, len(all))
	t.Run("all", func(t *testing.T) { // returns when its parallel subtests have finished
		for i := range max(*runs, 1) {
			for k, o := range all {
				t.Run(fmt.Sprintf("%v/%d", o, i), func(t *testing.T) {
					t.Parallel()
					served, healed, ok := o.run(t)
					results[k].add(o, served, healed, ok)
				})
			}
		}
	})
	fmt.Println("outage, seconds: median/worst")
	for k, o := range all {
		fmt.Printf("%-52v %v (goal %v)\n", o, &results[k], o.goal)
	}
}

// outcomes are the results of all runs of a case.
type outcomes struct {
	mu             sync.Mutex
	missed         int // runs in which a promise was broken
	late           int // others that exceeded a goal
	served, healed []time.Duration
}

func (r *outcomes) add(o outage, served, healed time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !ok:
		r.missed++
		return
	case o.late(served, healed):
		r.late++
	}
	r.served = append(r.served, served)
	r.healed = append(r.healed, healed)
}

func (r *outcomes) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("runs %3d missed %2d late %2d  served %s  healed %s",
		r.missed+len(r.served), r.missed, r.late, spread(r.served), spread(r.healed))
}

// late reports whether a run exceeded a goal.
func (o outage) late(served, healed time.Duration) bool {
	return served > o.goal || healed > goalWhole
}

func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "-"
	}
	slices.Sort(all)
	return fmt.Sprintf("%.1f/%.1f", all[len(all)/2].Seconds(), all[len(all)-1].Seconds())
}

// side divides the members of an outage.
type side struct {
	serves []int // the members that should serve
	others []int // those that should not; killed ones are in neither
}

// run runs a case once, and returns how long after the fault everything was answered, and how long
// after its end.
func (o outage) run(t *testing.T) (served, healed time.Duration, ok bool) {
	c := &members{t: t, net: netem.New(t, o.n), starts: make([]int, o.n),
		live: make([]*process, o.n), frozen: map[string]bool{}}
	c.n = o.n
	dir, err := os.MkdirTemp("", "concord-outage-") //nolint:usetesting // the logs of failures are kept
	if err != nil {
		t.Fatal(err)
	}
	c.dir = dir
	t.Cleanup(c.end)
	defer func() {
		c.late = o.late(served, healed) // keeps the logs
		t.Logf("served after %v, healed after %v: ok %v, late %v", served, healed, ok, c.late)
	}()
	for i := range o.n {
		c.hosts = append(c.hosts, c.net.Addr(i))
	}
	began, launched := time.Now(), bootTime()
	for i := range o.n {
		c.launchOutage(i)
	}
	if o.name == "start" {
		served, ok = c.awaitServed(launched, all(o.n), 1)
		if !ok {
			t.Error("not all members serve")
		}
		return served, 0, ok
	}
	time.Sleep(time.Until(began.Add(o.begin)))
	if o.begin >= 10*time.Second {
		c.awaitServed(bootTime(), all(o.n), goodRounds)
	}
	if o.name == "stop" {
		served, ok = c.stopTogether()
		return served, 0, ok
	}
	from, s := o.strike(c)
	window := o.goal + 7*time.Second
	if o.begin < 10*time.Second || o.store != "all" {
		window += 10 * time.Second // they start meanwhile, or wait for leases
	}
	time.Sleep(window)
	lasted := true
	if o.store == "nobody" {
		lasted = c.untilLeasesEnd(from)
		from = bootTime()
		c.everybodyReaches()
		time.Sleep(12 * time.Second)
	}
	served, ok = c.served(from, s)
	ok = ok && lasted
	ok = c.judge(o, s, from+served) && ok
	c.everybodyReaches()
	if len(s.others) == 0 {
		return served, healed, c.fewLines(o, s) && ok
	}
	c.net.Heal()
	mended := bootTime()
	h, whole := c.awaitServed(mended, append(slices.Clone(s.serves), s.others...), goodRounds)
	if !whole {
		t.Error("the members do not serve after the end of the fault")
	}
	return served, h, c.oneLine() && c.fewLines(o, s) && ok && whole
}

// stopTogether sends SIGTERM to all members at the same time, and returns how long the last one
// took to exit.
func (c *members) stopTogether() (took time.Duration, ok bool) {
	var mu sync.Mutex
	var all sync.WaitGroup
	ok = true
	for i, p := range c.live {
		all.Go(func() {
			d, err := p.terminate()
			mu.Lock()
			defer mu.Unlock()
			if took = max(took, d); err != nil {
				c.t.Error(err)
				ok = false
			}
			c.live[i], c.gone = nil, append(c.gone, p)
		})
	}
	all.Wait()
	return took, ok
}

// splitLine matches the line about a split, and splitEnd those about its end.
var (
	splitLine = regexp.MustCompile(`time=(\S+) level=WARN msg="the cluster is split`)
	splitEnd  = regexp.MustCompile(`msg="(the cluster is no longer split|this incarnation of the member has ended)`)
)

// oneLine checks that a member has logged the split in one line, however many members it is of, and
// its end. If they are heard of at different times, there may be another line.
func (c *members) oneLine() (ok bool) {
	ok = true
	for _, p := range c.live {
		if p == nil {
			continue
		}
		text, err := os.ReadFile(p.log)
		if err != nil {
			c.t.Fatal(err)
		}
		var last time.Time
		for _, m := range splitLine.FindAllStringSubmatch(string(text), -1) {
			at, err := time.Parse(time.RFC3339, m[1])
			if err != nil || at.Sub(last) < time.Second {
				c.t.Errorf("%s logs several lines about one split at %v: %v", p.Name, at, err)
				ok = false
			}
			last = at
		}
		ends := len(splitEnd.FindAllString(string(text), -1))
		if begins := len(splitLine.FindAllString(string(text), -1)); begins > ends {
			c.t.Errorf("%s logs %d splits, and the end of %d", p.Name, begins, ends)
			ok = false
		}
	}
	return ok
}

// all returns the indexes of n members.
func all(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

func (c *members) launchOutage(i int) {
	c.t.Helper()
	s := spec{Name: fmt.Sprintf("m%d", i), Host: c.hosts[i], Hosts: c.hosts, Outages: true,
		LeaseDir: filepath.Join(c.dir, "leases"), Silent: c.silent(i), Rounds: roundEvery}
	if c.n > 5 { // the start is measured, not the load
		s.Rounds = 2 * time.Second
	}
	c.live[i] = launch(c.t, s, filepath.Join(c.dir, s.Name+".log"), func(cmd *exec.Cmd) error {
		return c.net.Start(i, cmd)
	})
}

// strike causes the fault, and returns when, and which side should serve.
func (o outage) strike(c *members) (from time.Duration, s side) {
	host := c.clerkAt()
	others := slices.DeleteFunc(all(o.n), func(i int) bool { return i == host })
	switch o.name {
	case "cut-host", "cut-one-way", "crash-host":
		s = side{serves: others, others: []int{host}}
	case "cut-other":
		s = side{serves: append([]int{host}, others[1:]...), others: others[:1]}
	case "cut-two", "cut-half":
		s = side{serves: others[1:], others: []int{host, others[0]}}
	case "crash-most":
		s = side{serves: others[:(o.n-1)/2]}
	}
	major := len(s.serves) > o.n/2
	for _, i := range s.serves {
		if o.store == "nobody" || o.store == "minority" && major {
			c.silence(i)
		}
	}
	for _, i := range s.others {
		if o.store == "nobody" || o.store == "majority" {
			c.silence(i)
		}
	}
	from = bootTime()
	switch o.name {
	case "crash-host":
		c.kill(host)
		s.others = nil
	case "crash-most":
		for i := range o.n {
			if !slices.Contains(s.serves, i) {
				c.kill(i)
			}
		}
	default:
		for _, a := range s.serves {
			for _, b := range s.others {
				c.net.Set(b, a, netem.Link{Cut: true})
				if o.name != "cut-one-way" {
					c.net.Set(a, b, netem.Link{Cut: true})
				}
			}
		}
	}
	if o.store == "minority" {
		s.serves, s.others = s.others, s.serves
	}
	c.t.Logf("%v: %v should serve, %v should not", o, s.serves, s.others)
	return from, s
}

func (c *members) silence(i int) {
	c.silenced = append(c.silenced, i)
	if err := os.WriteFile(c.silent(i), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *members) everybodyReaches() {
	for i := range c.n {
		_ = os.Remove(c.silent(i))
	}
}

// clerkAt returns the member that answers for the singleton; the first, if none does yet.
func (c *members) clerkAt() int {
	var last questions
	for _, p := range c.live {
		for _, r := range p.now().rounds {
			if r.Clerk != "" && r.At > last.At {
				last = r
			}
		}
	}
	return max(0, slices.IndexFunc(c.live, func(p *process) bool { return p.Name == last.Clerk }))
}

// untilLeasesEnd checks what happens while no member reaches the lease store: each one goes on with
// what it has until its leases end, and no longer, and says that it has stopped.
func (c *members) untilLeasesEnd(from time.Duration) (ok bool) {
	// A lease that was renewed just before lasts for TTL, and guarded work stops before that: after
	// its last renewal at the earliest, which may be a quarter of the TTL old, less the drain.
	const least = defaultTTL * 3 / 8
	had, last := map[string]bool{}, map[string]time.Duration{}
	for _, p := range c.live {
		rounds := p.sorted()
		for _, r := range rounds {
			for _, name := range r.By {
				had[name] = had[name] || r.At >= from-2*time.Second && r.At < from
				last[name] = max(last[name], r.At)
			}
		}
		if n := len(rounds); n == 0 || rounds[n-1].NotReady == "" {
			c.t.Errorf("%s serves nothing, and is ready", p.Name)
			return false
		}
	}
	ok = len(had) > 0
	for name := range had {
		went := last[name] - from
		if had[name] && went < least || went > defaultTTL {
			c.t.Errorf("%s answers for %v after the store has fallen silent, want %v to %v", name,
				went, least, defaultTTL)
			ok = false
		}
	}
	return ok
}

// sorted returns the rounds of a process in the order in which they began.
func (p *process) sorted() []questions {
	rounds := slices.Clone(p.now().rounds)
	slices.SortStableFunc(rounds, func(a, b questions) int { return cmp.Compare(a.At, b.At) })
	return rounds
}

// served returns how long after from every question at the members that should serve was answered
// for good; false: never. A question that has waited counts from its answer.
func (c *members) served(from time.Duration, s side) (time.Duration, bool) {
	var took time.Duration
	ok := true
	if len(s.serves) > 0 && 2*len(s.serves) == c.n { // either half may serve
		s.serves = []int{c.clerkAt()}
	}
	for _, i := range s.serves {
		rounds := c.live[i].sorted()
		first := slices.IndexFunc(rounds, func(r questions) bool { return r.At >= from })
		if first < 0 {
			c.t.Errorf("%s asks nothing any more", c.live[i].Name)
			return 0, false
		}
		good, waits := from, true
		for _, r := range rounds[first:] {
			switch {
			case r.Missing > 0:
				good, waits = max(good, r.At+roundEvery), true
			case waits && r.Took > roundEvery:
				good = max(good, r.At+r.Took)
			default:
				waits = false
			}
		}
		took = max(took, good-from)
		if good > bootTime()-2*time.Second-roundTimeout {
			ok = false
			last := rounds[len(rounds)-1]
			c.t.Errorf("%s: %d of %d unanswered at the end: %s; view of %d; %s", c.live[i].Name,
				last.Missing, entities+1, last.Why, last.Members, last.NotReady)
		}
	}
	return took, ok
}

// judge checks that only the side that should serve has answered since it has served, and that
// /readyz says which one that is.
func (c *members) judge(o outage, s side, since time.Duration) (ok bool) {
	if 2*len(s.others) == c.n {
		return true
	}
	ok = true
	for _, i := range append(slices.Clone(s.serves), s.others...) {
		serves := slices.Contains(s.serves, i)
		var last questions
		for _, r := range c.live[i].sorted() {
			if r.At < since {
				continue
			}
			last = r
			for _, name := range r.By {
				at := slices.IndexFunc(c.live, func(p *process) bool {
					return p != nil && p.Name == name
				})
				if !slices.Contains(s.serves, at) {
					c.t.Errorf("%s, of a side that should not serve, answers %v after the other one",
						name, r.At-since)
					return false
				}
			}
		}
		if serves && strings.HasPrefix(last.NotReady, "node: starting") &&
			o.begin < 10*time.Second {
			continue // its replicator waits for a majority of the members that began the cluster
		}
		if serves != (last.NotReady == "") {
			c.t.Errorf("%s serves: %v, and /readyz says %q", c.live[i].Name, serves, last.NotReady)
			ok = false
		}
	}
	return ok
}

// goodRounds is how many rounds in a row a member must have been answered to count as served.
const goodRounds = 8

// awaitServed waits until the given members list each other and every question since then, of a
// number of rounds, is answered, and returns how long that took.
func (c *members) awaitServed(since time.Duration, which []int, number int) (took time.Duration,
	ok bool) {
	for {
		good := time.Duration(0)
		done := true
		for _, i := range which {
			p := c.live[i]
			rounds := p.sorted()
			at := len(rounds)
			for at > 0 && rounds[at-1].At >= since && rounds[at-1].Missing == 0 &&
				rounds[at-1].Members == len(which) && rounds[at-1].NotReady == "" {
				at--
			}
			if len(rounds)-at < number {
				done = false
				break
			}
			good = max(good, rounds[at].At+rounds[at].Took)
		}
		if done {
			return good - since, true
		}
		if bootTime()-since > patience() {
			return 0, false
		}
		time.Sleep(poll)
	}
}
