package clustertest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/ports"
)

// check is one claim, named by the rules it covers.
type check struct {
	rule string
	run  func(*env)
}

// raceRule is checked whenever a process has ended, in all checks.
const raceRule = "P15"

// Run checks all rules, each on its own clusters, some of them concurrently. Failure messages begin
// with the broken rule.
func Run(t *testing.T, c Config) {
	if os.Getenv(childEnv) != "" {
		t.Fatal("this process is a member: TestMain must begin with clustertest.Main")
	}
	c = c.withDefaults()
	for rule := range c.Except {
		if rule != raceRule && !slices.ContainsFunc(slices.Concat(checks, serverChecks),
			func(k check) bool {
				return k.rule == rule
			}) {
			t.Fatalf("Config.Except: there is no rule %q", rule)
		}
	}
	all(t, c, checks, together)
	all(t, c, serverChecks, 1) // each one stops the shared server
}

// together is the number of checks that run concurrently. They mostly wait.
const together = 3

// all runs checks, at most atOnce at a time.
func all(t *testing.T, c Config, checks []check, atOnce int) {
	var running sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, k := range checks {
		if why := c.omits(k); why != "" {
			t.Logf("%s is not checked: %s", k.rule, why)
			continue
		}
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			t.Run(k.rule, func(t *testing.T) { k.run(&env{T: t, config: c, rule: k.rule}) })
		})
	}
	running.Wait()
}

// omits returns the reason why a check is skipped, or "".
func (c Config) omits(k check) string {
	if why := c.Except[k.rule]; why != "" {
		return why
	}
	if c.Server == nil && slices.ContainsFunc(serverChecks, func(s check) bool {
		return s.rule == k.rule
	}) {
		return "there is no Config.Server"
	}
	if k.rule == "P17" && c.Server.Silence == nil {
		return "there is no Server.Silence"
	}
	return ""
}

// env is the environment of a check.
type env struct {
	*testing.T
	config Config
	rule   string // the rule that a failure breaks
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// places returns places for n members of a new cluster.
func (e *env) places(n int) []Member {
	e.Helper()
	name := fmt.Sprintf("%s-%06d", strings.ToLower(e.rule), rand.IntN(1_000_000))
	free := ports.Free(e, 2*n)
	out := make([]Member, n)
	for i := range out {
		out[i] = Member{Cluster: name, Index: i, Host: "127.0.0.1", Port: free[i], Spare: free[n:]}
	}
	return out
}

// cluster starts n members of a new cluster concurrently, and returns when all list all.
func (e *env) cluster(n int) []*process {
	e.Helper()
	var all []*process
	for _, m := range e.places(n) {
		all = append(all, e.launch(m))
	}
	e.startAll(all)
	e.agree(e.config.ListedWithin, all...)
	return all
}

// startAll begins an incarnation in each process, concurrently.
func (e *env) startAll(all []*process) {
	e.Helper()
	for _, p := range all {
		if p.send(cmdStart); e.config.OneByOne {
			p.answer(0, evStarted, evFailed)
		}
	}
	for _, p := range all {
		p.isStarted(p.answer(0, evStarted, evFailed))
	}
}

// agree waits until the members list exactly themselves and each other, under the same ids.
func (e *env) agree(within time.Duration, all ...*process) {
	e.Helper()
	e.eventually(within, func() bool {
		return disagreement(all) == ""
	}, "%s", lazily(func() string { return disagreement(all) }))
}

// disagreement describes what is missing, or returns "".
func disagreement(all []*process) string {
	for _, p := range all {
		if p.id() == "" {
			return fmt.Sprintf("P1: member %d does not list itself", p.member.Index)
		}
	}
	for _, p := range all {
		for _, q := range all {
			m, ok := p.at(q.member.Address())
			if !ok {
				return fmt.Sprintf("member %d does not list member %d at %s", p.member.Index,
					q.member.Index, q.member.Address())
			}
			if m.ID != q.id() {
				return fmt.Sprintf("member %d lists %s as %q, which lists itself as %q",
					p.member.Index, m.Address, m.ID, q.id())
			}
		}
		if n := len(p.list()); n != len(all) {
			return fmt.Sprintf("member %d lists %d members instead of %d", p.member.Index, n,
				len(all))
		}
	}
	return ""
}

// eventually waits for a condition. If it does not hold within the given time, the rule is broken.
func (e *env) eventually(within time.Duration, condition func() bool, format string, args ...any) {
	e.Helper()
	for deadline := time.Now().Add(within); !condition(); time.Sleep(poll) {
		if time.Now().After(deadline) {
			e.Fatalf("%s: after %v: "+format, append([]any{e.rule, within}, args...)...)
		}
	}
}

// lazily is evaluated when it is printed.
type lazily func() string

func (l lazily) String() string { return l() }
