package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// row is a workload in the table of make bench-peers, with its goals. A goal of 0 is none.
type row struct {
	title string
	work  string // the name of the benchmark after the system
	peers string // that of the others if it differs
	// Goals: least rates, as multiples of Pekko's and of bare Proto.Actor's and a second, and the
	// most bytes that the updated member sends for an operation.
	pekko, bare, rate, bytes float64
}

func counters(op string, keys, callers int) string {
	return fmt.Sprintf("op=%s/kind=counter/elems=0/keys=%d/size=0/callers=%d", op, keys, callers)
}

func sets(op string, elems, keys, callers int) string {
	return fmt.Sprintf("op=%s/kind=set/elems=%d/keys=%d/size=10/callers=%d", op, elems, keys,
		callers)
}

var rows = []row{
	{title: "get by message, 1 caller", work: counters("get", 1, 1), pekko: 1, bare: 0.8},
	{title: "64 callers", work: counters("get", 1, 64)},
	{title: "1,000 callers", work: counters("get", 1, 1000), pekko: 1, bare: 0.8},
	{title: "direct Get of a counter, unchanged", work: counters("direct-get", 1, 1), rate: 10e6},
	{title: "of a set of 1,000", work: sets("direct-get", 1000, 1, 1), rate: 10e6},
	{title: "update of a set of 1,000 by message, 1 caller", work: sets("update", 1000, 1, 1)},
	{title: "64 callers", work: sets("update", 1000, 1, 64)},
	{title: "1,000 callers", work: sets("update", 1000, 1, 1000), pekko: 1.3},
	{title: "majority by message, 1 caller", work: counters("majority", 1, 1), bare: 1 / 1.5},
	{title: "64 callers", work: counters("majority", 1, 64), rate: 60_000},
	{title: "direct majority, 1 caller; the others by message", work: counters("direct-majority", 1,
		1), peers: counters("majority", 1, 1), bare: 1 / 1.5},
	{title: "64 callers", work: counters("direct-majority", 1, 64), peers: counters("majority", 1,
		64), rate: 60_000},
	{title: "100 counters in turn, at both others; answered, 64 callers",
		work: counters("spread", 100, 64), pekko: 2, bytes: 2},
	{title: "not answered", work: counters("spread", 100, 0), pekko: 2, bytes: 2},
	{title: "100 sets in turn, at both others; answered, 64 callers", work: sets("spread", 10, 100,
		64), pekko: 3, bytes: 40},
	{title: "not answered", work: sets("spread", 10, 100, 0), pekko: 3, bytes: 40},
}

// callersPlot, keysPlot and sizePlot are throughput over one dimension, with a line for each
// system.
func callersPlot(op, title string) plot {
	return peersPlot("peers-callers-"+op, title, "callers", "callers", "/op="+op+
		"/kind=counter/elems=0/keys=1/size=0/")
}

func keysPlot(op, title string) plot {
	return peersPlot("peers-keys-"+op, title, "keys", "keys", "/op="+op+
		"/kind=counter/ /size=0/callers=64/")
}

func sizePlot(op, title string) plot {
	return peersPlot("peers-size-"+op, title, "size", "bytes of the value", "/op="+op+
		"/kind=register/")
}

func peersPlot(file, title, x, xTitle, what string) plot {
	p := plot{file: file, title: title, x: x, xTitle: xTitle, yTitle: "operations/s"}
	for _, s := range []struct{ label, of string }{{"bare Proto.Actor", "bare"},
		{"Concord", "concord"}, {"Pekko", "pekko"}} {
		p.series = append(p.series, series{s.label, "/of=" + s.of + "/ " + what})
	}
	return p
}

var peersPlots = []plot{
	callersPlot("get", "Get of a counter by message"),
	callersPlot("update", "Update of a counter by message"),
	callersPlot("majority", "Update of a counter by message, answered by a majority"),
	keysPlot("get", "Get of counters in turn, 64 callers"),
	keysPlot("update", "Update of counters in turn, 64 callers"),
	keysPlot("spread", "Update of counters in turn, 64 callers, until both others have all"),
	sizePlot("update", "Update of a register, 64 callers"),
	sizePlot("majority", "Update of a register, 64 callers, answered by a majority"),
}

// peersTable returns the tables of a file of results in Markdown.
func peersTable(file string) (string, error) {
	at, head, err := measured(file, "bench-peers")
	if err != nil || len(at) == 0 {
		return head, err
	}
	var b strings.Builder
	b.WriteString(head)
	for _, r := range rows {
		b.WriteString(r.line(at))
	}
	b.WriteString("\n| heap of an entry, at the writer / at another member | Concord | Pekko | goal | |\n|---|---|---|---|---|\n")
	for _, h := range heapRows {
		b.WriteString(h.line(at))
	}
	b.WriteString("\n| singleton elsewhere after the host was killed | Concord | Pekko | goal | |\n|---|---|---|---|---|\n")
	for _, t := range takeOverRows {
		b.WriteString(t.line(at))
	}
	return b.String(), nil
}

// measured returns what results does, with the head of the first table.
func measured(file, target string) (at map[string]point, head string, err error) {
	at, head, err = results(file, target)
	if len(at) > 0 {
		head += "\n| | Concord | Pekko | bare Proto.Actor | to Pekko | to bare | goal |\n" +
			"|---|---|---|---|---|---|---|\n"
	}
	return at, head, err
}

// results returns the results in a file by name, and when and on what they were measured. If there
// are none, it names the make target.
func results(file, target string) (at map[string]point, head string, err error) {
	points, err := read(file)
	if err != nil {
		return nil, "", err
	}
	if len(points) == 0 {
		return nil, "Not measured yet: run `make " + target + "`.\n", nil
	}
	at = map[string]point{}
	for _, p := range points {
		at[p.name] = p
	}
	about, err := comments(file)
	return at, strings.Join(append(about, "load "+loads(points)), "; ") + ".\n", err
}

// comments returns the comments at the beginning of a file of results.
func comments(file string) (all []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "# "); ok {
			all = append(all, text)
		}
	}
	return all, lines.Err()
}

// line returns a row of the table.
func (r row) line(at map[string]point) string {
	peers := r.peers
	if peers == "" {
		peers = r.work
	}
	concord, pekko, bare := at["BenchmarkPeers/of=concord/"+r.work],
		at["BenchmarkPeers/of=pekko/"+peers], at["BenchmarkPeers/of=bare/"+peers]
	toPekko, toBare := ratio(concord, pekko), ratio(concord, bare)
	verdict := ""
	if r.pekko+r.bare+r.rate+r.bytes > 0 {
		verdict = r.goal() + ": met"
		switch {
		case concord.metrics == nil, r.pekko > 0 && toPekko == 0, r.bare > 0 && toBare == 0:
			verdict = r.goal() + ": not measured"
		case toPekko < r.pekko, toBare < r.bare, concord.metrics["ops/s"] < r.rate,
			r.bytes > 0 && concord.metrics["sent-B/op"] > r.bytes:
			verdict = r.goal() + ": **missed**"
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", r.title, cell(concord),
		cell(pekko), cell(bare), times(toPekko), times(toBare), verdict)
}

// heapRow is a size of value, with the most bytes of heap that an entry with it may take.
type heapRow struct {
	size  int
	bytes float64
}

var heapRows = []heapRow{{100, 250}, {1000, 1200}}

// line returns a row of the second table.
func (h heapRow) line(at map[string]point) string {
	of := func(system string) (text string, most float64) {
		m := at[fmt.Sprintf("BenchmarkPeers/of=%s/op=all/kind=register/elems=0/keys=20000/size=%d/callers=64", system, h.size)].metrics
		if m == nil {
			return "–", 0
		}
		return fmt.Sprintf("%.0f / %.0f B", m["heap-B/key"], m["reader-heap-B/key"]),
			max(m["heap-B/key"], m["reader-heap-B/key"])
	}
	concord, most := of("concord")
	pekko, _ := of("pekko")
	return fmt.Sprintf("| register of %s bytes, 20,000 of them | %s | %s | ≤ %s B | %s |\n",
		grouped(float64(h.size)), concord, pekko, grouped(h.bytes), atMost(most, h.bytes))
}

// takeOverRow is a timeout of the take-over of a singleton, with the longest time until an instance
// runs elsewhere.
type takeOverRow struct {
	title   string
	name    string
	seconds float64
}

// The goal is 1 s and 1.01 times the time to live of the lease, whose default is 30 s.
var takeOverRows = []takeOverRow{
	{"timeout of 3 s", "op=takeover/seconds=3", 3*1.01 + 1},
	{"defaults", "op=takeover/seconds=0", 30*1.01 + 1},
}

// line returns a row of the third table.
func (t takeOverRow) line(at map[string]point) string {
	of := func(system string) (text string, most float64) {
		m := at["BenchmarkPeers/of="+system+"/"+t.name].metrics
		if m == nil {
			return "–", 0
		}
		return fmt.Sprintf("%.1f s (%.1f to %.1f)", m["s-to-host"], m["min-s-to-host"],
			m["max-s-to-host"]), m["max-s-to-host"]
	}
	concord, most := of("concord")
	pekko, _ := of("pekko")
	return fmt.Sprintf("| %s | %s | %s | ≤ %.1f s | %s |\n", t.title, concord, pekko, t.seconds,
		atMost(most, t.seconds))
}

// atMost returns the verdict on a value of which less is better; 0 is none.
func atMost(n, goal float64) string {
	switch {
	case n == 0:
		return "not measured"
	case n > goal:
		return "**missed**"
	}
	return "met"
}

func (r row) goal() string {
	var all []string
	if r.pekko > 0 {
		all = append(all, fmt.Sprintf("%.3g × Pekko", r.pekko))
	}
	if r.bare > 0 {
		all = append(all, fmt.Sprintf("%.2g × bare", r.bare))
	}
	if r.rate > 0 {
		all = append(all, grouped(r.rate)+"/s")
	}
	if r.bytes > 0 {
		all = append(all, fmt.Sprintf("≤ %g B", r.bytes))
	}
	return strings.Join(all, ", ")
}

// ratio returns the quotient of two rates, or 0 if one is missing.
func ratio(p, to point) float64 {
	if to.metrics["ops/s"] == 0 {
		return 0
	}
	return p.metrics["ops/s"] / to.metrics["ops/s"]
}

func times(n float64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", n)
}

// cell returns the rate and the processor time of an operation.
func cell(p point) string {
	if p.metrics == nil {
		return "–"
	}
	m := p.metrics
	text := fmt.Sprintf("%s/s, %s", grouped(m["ops/s"]), duration(m["cpu-ns/op"]))
	if later, ok := m["later-ms"]; ok {
		text += fmt.Sprintf("; equal after %s ms; %.2g B", grouped(later), m["sent-B/op"])
	}
	return text
}

func duration(ns float64) string {
	switch {
	case ns < 1000:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1000)
	}
	return fmt.Sprintf("%.3g ms", ns/1e6)
}

// grouped returns a number with three significant digits and commas between thousands.
func grouped(n float64) string {
	rounded, _ := strconv.ParseFloat(fmt.Sprintf("%.3g", n), 64)
	if rounded < 1000 {
		return fmt.Sprintf("%g", rounded)
	}
	digits := fmt.Sprintf("%.0f", rounded)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// loads returns the range of the load average over all points that have it.
func loads(points []point) string {
	least, most, found := 0.0, 0.0, false
	for _, p := range points {
		low, has := p.metrics["min-load"]
		if !has {
			continue
		}
		if !found || low < least {
			least = low
		}
		most, found = max(most, p.metrics["max-load"]), true
	}
	return fmt.Sprintf("%.1f to %.1f", least, most)
}
