//go:build linux

package healtest_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// result is the result of one run.
type result struct {
	seed   uint64
	took   map[string]time.Duration
	missed bool // a promise was broken
}

func (r result) String() string {
	var out []string
	for _, c := range columns {
		if d, ok := r.took[c]; ok || c != "exit" {
			out = append(out, fmt.Sprintf("%s %.1fs", c, d.Seconds()))
		}
	}
	return strings.Join(out, ", ")
}

var columns = []string{oneView, equalData, answering, "exit"}

// table is the table that is printed at the end.
type table struct {
	cases []played
	mu    sync.Mutex
	runs  map[string][]result
}

func newTable(cases []played) *table { return &table{cases: cases, runs: map[string][]result{}} }

func (tb *table) add(p played, r result) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.runs[p.String()] = append(tb.runs[p.String()], r)
}

// String prints a line per case: seconds at p50/p99/max.
func (tb *table) String() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	var b, late strings.Builder
	fmt.Fprintf(&b, "%-32s %5s %6s %5s", "case (seconds: p50/p99/max)", "runs", "missed", "goal")
	for _, c := range columns {
		fmt.Fprintf(&b, " %20s", c)
	}
	b.WriteString("\n")
	for _, p := range tb.cases {
		rs := tb.runs[p.String()]
		missed := 0
		for _, r := range rs {
			if r.missed {
				missed++
			}
		}
		fmt.Fprintf(&b, "%-32s %5d %6d %5.0f", p, len(rs), missed, p.goal.Seconds())
		for _, c := range columns {
			p50, p99, most := quantiles(rs, c)
			fmt.Fprintf(&b, " %20s", fmt.Sprintf("%.1f/%.1f/%.1f", p50.Seconds(), p99.Seconds(),
				most.Seconds()))
			goal := p.goal
			if c == "exit" {
				goal = goalExit
			}
			if p99 > goal {
				fmt.Fprintf(&late, "LATE: %s: %s takes %.1f s at p99, the goal is %v\n", p, c,
					p99.Seconds(), goal)
			}
		}
		b.WriteString("\n")
	}
	return b.String() + late.String()
}

// quantiles returns the quantiles of the runs that were not missed.
func quantiles(rs []result, column string) (p50, p99, most time.Duration) {
	var all []time.Duration
	for _, r := range rs {
		if !r.missed {
			all = append(all, r.took[column])
		}
	}
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(math.Ceil(q*float64(len(all))))-1] }
	return at(0.5), at(0.99), all[len(all)-1]
}
