//go:build linux

package healtest_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/concord-go/concord/lab/netem"
)

var (
	runs = flag.Int("runs", 0, "runs of each case; 0: one run of a few cases")
	only = flag.String("case", "",
		"only cases that match, of which the names are fault/members/provider")
	seed = flag.Uint64("seed", 0,
		"of the first run; 0: by chance. It decides who is hit, and for how long")
	provider = flag.String("provider", "",
		"only cases with this provider: automanaged, etcd or protoactor")
	length = flag.Duration("for", 0,
		"how long the fault lasts; 0: by chance from 1s to 60s, 6s in the sample")
	size = flag.Int("members", 0, "only cases with so many members")
)

// TestMain runs a member instead of the tests if the driver started this process.
func TestMain(m *testing.M) {
	if text := os.Getenv(memberEnv); text != "" {
		out := os.Stdout
		os.Stdout = os.Stderr // automanaged's server prints a greeting
		os.Exit(runMember(text, os.Stdin, out))
	}
	goleak.VerifyTestMain(m)
}

// heals is one fault, tested on clusters of several sizes.
type heals struct {
	name    string
	members []int
	goal    time.Duration
	fault   fault
	etcd    bool             // needs etcd
	quick   bool             // part of the sample: with the first size and Proto.Actor's provider
	leases  string           // leases in addition to the singleton's
	forged  string           // what members prove themselves with, while messages are forged
	check   func(c *members) // checks the records at the end; may be nil
	chaos   string           // default settings, with accounts, and where their data is
}

// Goals for the time between the end of a fault and a healed cluster.
const (
	goalOne      = 8 * time.Second
	goalFragment = 20 * time.Second
	goalFrozen   = leaseTTL + 10*time.Second
	goalGuarded  = longTTL + 10*time.Second
	goalExit     = 3 * time.Second
	goalChaos    = defaultTTL + 10*time.Second
)

var faults = []heals{
	{name: "cut-one", members: []int{3, 5}, goal: goalOne, fault: apart(single), quick: true},
	{name: "cut-two", members: []int{5}, goal: goalFragment, fault: apart(sizes(1, 1))},
	{name: "cut-half", members: []int{4, 5}, goal: goalFragment, fault: apart(half)},
	{name: "cut-link", members: []int{3, 5}, goal: goalOne, fault: cutLink},
	{name: "cut-one-way", members: []int{3, 5}, goal: goalOne, fault: cutOneWay},
	{name: "cut-provider", members: []int{3, 5}, goal: goalOne, fault: cutProvider, etcd: true},
	{name: "fragments-1+1+1", members: []int{3}, goal: goalFragment,
		fault: apart(sizes(1, 1)), quick: true},
	{name: "fragments-2+2", members: []int{4}, goal: goalFragment, fault: apart(sizes(2))},
	{name: "fragments-2+2+1", members: []int{5}, goal: goalFragment, fault: apart(sizes(2, 2))},
	{name: "freeze-one", members: []int{3, 5}, goal: goalFrozen, fault: freeze(one), quick: true},
	{name: "freeze-majority", members: []int{3, 5}, goal: goalFrozen, fault: freeze(majority)},
	{name: "freeze-all", members: []int{3, 5}, goal: goalFrozen, fault: freeze(everyone)},
	{name: "kill-one", members: []int{3, 5}, goal: goalFrozen, fault: kill(one)},
	{name: "kill-all-but-one", members: []int{3, 5}, goal: goalFragment, fault: kill(allButOne)},
	{name: "kill-rolling", members: []int{3, 5}, goal: goalFrozen, fault: killRolling},
	{name: "cut-again", members: []int{3, 5}, goal: goalFragment, fault: cutAgain},
	{name: "cut-and-kill", members: []int{3, 5}, goal: goalFragment, fault: cutAndKill},
	{name: "cut-and-stop", members: []int{3, 5}, goal: goalFragment, fault: cutAndStop},
	{name: "kill-and-stop", members: []int{3, 5}, goal: goalFrozen, fault: killAndStop, quick: true},
	{name: "provider-down", members: []int{3, 5}, goal: goalOne, fault: providerDown, etcd: true},
	{name: "nothing", members: []int{3, 5}, goal: goalOne, fault: nothing, check: noErrors},
	{name: "forged-and-cut", members: []int{3}, goal: goalOne, fault: apart(single),
		check: nothingForged, forged: withSecret},
	{name: "forged-and-freeze", members: []int{3}, goal: goalFrozen, fault: freeze(one),
		check: nothingForged, forged: withTLS},
	{name: "forged-and-kill", members: []int{3}, goal: goalFrozen, fault: kill(one),
		check: nothingForged, forged: withSecret},
	{name: "guard-store-silent", members: []int{3, 5}, goal: goalGuarded, fault: silentStore,
		check: stoppedInTime, leases: withGuard},
	{name: "cut-host", members: []int{3, 5}, goal: goalFragment, fault: cutWithHost,
		check: majorityHosts},
	{name: "chaos", members: []int{3, 5}, goal: goalChaos, fault: chaos, check: numbersOnce,
		chaos: inMemory},
	{name: "chaos-durable", members: []int{3, 5}, goal: goalChaos, fault: chaos,
		check: numbersOnce, chaos: durable},
}

// played is one case: a fault on a cluster of one size with one provider.
type played struct {
	heals
	n        int
	provider string
}

func (p played) String() string { return fmt.Sprintf("%s/%d/%s", p.name, p.n, p.provider) }

// cases returns the cases selected by the flags.
func cases(t *testing.T) (all []played) {
	t.Helper()
	match, err := regexp.Compile(*only)
	if err != nil {
		t.Fatalf("-case: %v", err)
	}
	sample := *runs == 0 && *only == ""
	for _, h := range faults {
		for _, n := range h.members {
			for _, with := range []string{withAutomanaged, withEtcd, withProtoActor} {
				p := played{h, n, with}
				switch {
				case h.etcd && with != withEtcd:
				case with == withProtoActor && !h.quick && h.name != "nothing":
				case with == withEtcd && os.Getenv(etcdEnv) == "":
				case *provider != "" && *provider != with:
				case *size != 0 && *size != n:
				case sample && (!h.quick || n != 3 || with != withAutomanaged):
				case match.MatchString(p.String()):
					all = append(all, p)
				}
			}
		}
	}
	if slices.ContainsFunc(outagesAll(), func(o outage) bool {
		return *only != "" && match.MatchString(o.String())
	}) && len(all) == 0 {
		t.Skip("the cases that match are those of TestOutage")
	}
	if len(all) == 0 {
		t.Fatalf("no case matches (those with etcd need %s)", etcdEnv)
	}
	return all
}

// TestHeal runs every case and prints how long each took to heal.
func TestHeal(t *testing.T) {
	if err := netem.Possible(); err != nil && os.Getenv("CI") != "true" {
		t.Skipf("NOT TESTED: netem needs root on Linux with /dev/net/tun: %v", err)
	}
	first := *seed
	if first == 0 {
		first = rand.Uint64N(1_000_000) + 1
	}
	results := newTable(cases(t))
	t.Run("all", func(t *testing.T) { // returns when its parallel subtests have finished
		for _, p := range results.cases {
			for i := range max(*runs, 1) {
				s := first + uint64(i)
				t.Run(fmt.Sprintf("%s/seed=%d", p, s), func(t *testing.T) {
					t.Parallel()
					results.play(t, p, s)
				})
			}
		}
	})
	fmt.Print(results)
}

// play runs a case once.
func (tb *table) play(t *testing.T, p played, seed uint64) {
	res := result{seed: seed, took: map[string]time.Duration{}}
	t.Cleanup(func() { // after the cluster's cleanup, which checks the logs
		res.missed = t.Failed()
		tb.add(p, res)
	})
	random := newRandom(p, seed)
	// 1s to 60s
	d := time.Duration(float64(time.Second) * math.Pow(60, random.Float64())).Round(
		100 * time.Millisecond)
	switch {
	case *length > 0:
		d = *length
	case *runs == 0:
		d = 6 * time.Second
	}
	c := start(t, p)
	time.Sleep(time.Second)
	p.fault(c, random, d)
	since, after, before := time.Now(), bootTime(), c.routines()
	conditions := whole(c, after, c.floor())
	if c.chaos != "" {
		conditions = append(conditions, condition{everyAccount,
			func() string { return c.unanswered(after) }})
	}
	took, missing := c.heal(conditions, since, patience())
	res.took = took
	t.Logf("after the end of the fault: %v; goroutines, before and now: %v, %v", res, before,
		c.routines())
	for _, d := range took {
		c.late = c.late || d > p.goal
	}
	if missing != "" {
		t.Fatalf("%v after the end of the fault: %s", time.Since(since).Round(time.Second), missing)
	}
	took["exit"] = c.finish(random)
	if p.check != nil {
		p.check(c)
	}
}

func newRandom(p played, seed uint64) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(p.String()))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
