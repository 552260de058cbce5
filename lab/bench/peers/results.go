//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// figure is one run of a work, by unit.
type figure map[string]float64

// units are all units, in the order in which they are written.
var units = []string{"ops/s", "cpu-ns/op", "p50-ns", "local-ops/s", "later-ms", "sent-B/op",
	"net-B/op", "peak-heap-B", "load", "others-cpus", "heap-B/key", "reader-heap-B/key",
	"s-to-host", "dark-ms", "still-ms", "lost"}

// ranged are the units whose least and greatest values are written too.
var ranged = []string{"ops/s", "cpu-ns/op", "load", "others-cpus", "s-to-host", "dark-ms",
	"still-ms"}

// summed are the units whose values are added up.
var summed = []string{"lost"}

// result is all runs of a work by one system.
type result struct {
	of   string
	name string // of the workload
	runs []figure
}

// spread returns the median, the least and the greatest value of a unit. It reports false if no run
// has it.
func (r *result) spread(unit string) (median, least, most float64, ok bool) {
	var all []float64
	for _, f := range r.runs {
		if v, has := f[unit]; has {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0, 0, 0, false
	}
	slices.Sort(all)
	median = all[len(all)/2]
	if len(all)%2 == 0 {
		median = (all[len(all)/2-1] + all[len(all)/2]) / 2
	}
	return median, all[0], all[len(all)-1], true
}

// line returns the result in the format of Go's benchmarks: name, number of runs, and values with
// their units. Values without a prefix are medians, those of summed units are sums.
func (r *result) line() string {
	var b strings.Builder
	fmt.Fprintf(&b, "BenchmarkPeers/of=%s/%s %d", r.of, r.name, len(r.runs))
	for _, unit := range units {
		value, least, most, ok := r.spread(unit)
		if !ok {
			continue
		}
		if slices.Contains(summed, unit) {
			value = 0
			for _, f := range r.runs {
				value += f[unit]
			}
		}
		fmt.Fprintf(&b, " %.4g %s", value, unit)
		if slices.Contains(ranged, unit) {
			fmt.Fprintf(&b, " %.4g min-%s %.4g max-%s", least, unit, most, unit)
		}
	}
	return b.String()
}

// report prints the rates of all systems side by side.
func report(out io.Writer, systems []string, works []work, results map[string]*result) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "operations/s, median (least to greatest)\t%s\tothers' CPUs\t\n",
		strings.Join(systems, "\t"))
	for _, w := range works {
		fmt.Fprintf(table, "%s\t", w.arguments())
		others := 0.0
		for _, of := range systems {
			r := results[resultKey(of, w)]
			if r == nil || len(r.runs) == 0 {
				fmt.Fprint(table, "-\t")
				continue
			}
			median, least, most, _ := r.spread("ops/s")
			fmt.Fprintf(table, "%.0f (%.0f to %.0f)\t", median, least, most)
			_, _, busiest, _ := r.spread("others-cpus")
			others = max(others, busiest)
		}
		fmt.Fprintf(table, "%.1f\t\n", others)
	}
	_ = table.Flush()
}

func resultKey(of string, w work) string { return of + "/" + w.String() }
