package main

import (
	"fmt"
	"strings"
)

// gridKeys are the numbers of keys of make bench-peers-keys.
var gridKeys = []int{1, 100, 1000, 100_000}

// gridRow is a row of its table: an operation of a kind of values with a number of callers.
type gridRow struct {
	title, op, peers string // peers: the operation of the others
	callers          int
}

var gridRows = []gridRow{
	{"by message, 1 caller", "update", "update", 1},
	{"64 callers", "update", "update", 64},
	{"1,000 callers", "update", "update", 1000},
	{"direct, 1 caller; the others by message", "direct-update", "update", 1},
	{"64 callers", "direct-update", "update", 64},
	{"1,000 callers", "direct-update", "update", 1000},
}

// keysTable returns the tables of a file of results in Markdown.
func keysTable(file string) (string, error) {
	at, about, err := results(file, "bench-peers-keys")
	if err != nil || len(at) == 0 {
		return about, err
	}
	var b strings.Builder
	b.WriteString(about)
	head := func(title string, more ...string) {
		fmt.Fprintf(&b, "\n| %s |", title)
		for _, keys := range gridKeys {
			fmt.Fprintf(&b, " %s |", keysText(keys))
		}
		for _, m := range more {
			fmt.Fprintf(&b, " %s |", m)
		}
		b.WriteString("\n|" + strings.Repeat("---|", 1+len(gridKeys)+len(more)) + "\n")
	}
	for _, k := range []struct{ title, dims string }{
		{"counter", "kind=counter/elems=0/keys=%d/size=0"},
		{"register of 100 bytes", "kind=register/elems=0/keys=%d/size=100"},
		{"set of ten", "kind=set/elems=10/keys=%d/size=10"},
	} {
		head(k.title)
		for _, r := range gridRows {
			fmt.Fprintf(&b, "| %s |", r.title)
			for _, keys := range gridKeys {
				of := func(system, op string) point {
					return at[fmt.Sprintf("BenchmarkPeers/of=%s/op=%s/%s/callers=%d", system, op,
						fmt.Sprintf(k.dims, keys), r.callers)]
				}
				concord := of("concord", r.op)
				fmt.Fprintf(&b, " %s; %s, %s |", rateText(concord),
					times(ratio(concord, of("pekko", r.peers))),
					times(ratio(concord, of("bare", r.peers))))
			}
			b.WriteByte('\n')
		}
		b.WriteString("| heap, direct, 1,000 callers |")
		for _, keys := range gridKeys {
			fmt.Fprintf(&b, " %s |", heapText(at["BenchmarkPeers/of=concord/op=direct-update/"+
				fmt.Sprintf(k.dims, keys)+"/callers=1000"]))
		}
		b.WriteByte('\n')
	}
	head("direct, 64 callers", "heap")
	for _, k := range gridTypes {
		heap := ""
		fmt.Fprintf(&b, "| %s |", k)
		for _, keys := range gridKeys {
			p := at[fmt.Sprintf("BenchmarkPeers/of=concord/op=direct-update/kind=%s/elems=0/"+
				"keys=%d/size=0/callers=64", strings.ToLower(k), keys)]
			fmt.Fprintf(&b, " %s |", rateText(p))
			heap = heapText(p) // with the most keys
		}
		fmt.Fprintf(&b, " %s |\n", heap)
	}
	return b.String(), nil
}

// gridTypes are the types of values that only Concord measures.
var gridTypes = []string{"GCounter", "BoundedCounter", "EWFlag", "DWFlag", "MaxRegister",
	"MinRegister", "MVRegister", "GSet", "RWSet", "LWWMap", "PNCounterMap", "ORMultiMap", "ORMap",
	"Record"}

func keysText(n int) string {
	if n == 1 {
		return "1 key"
	}
	return grouped(float64(n)) + " keys"
}

// rateText returns the rate a second.
func rateText(p point) string {
	if p.metrics == nil {
		return "–"
	}
	return grouped(p.metrics["ops/s"])
}

// heapText returns how far the heap grew during a run.
func heapText(p point) string {
	if p.metrics == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f MB", p.metrics["peak-heap-B"]/1e6)
}
