package main

import (
	"fmt"
	"strings"
)

// shardRow is a workload of entities in the table of make bench-peers-sharding. Each has to be
// ahead of Pekko. A goal of 0 beside bare Proto.Actor is none.
type shardRow struct {
	title, work string
	bare        float64
}

var shardRows = []shardRow{
	{"tell to one entity here", "op=tell/place=local/entities=1/callers=0", 1.0 / 3},
	{"1,000 entities here in turn", "op=tell/place=local/entities=1000/callers=0", 1.0 / 3},
	{"request to an entity here, 1 caller", "op=request/place=local/entities=100/callers=1", 0},
	{"100 callers", "op=request/place=local/entities=100/callers=100", 0},
	{"tell to one entity elsewhere", "op=tell/place=remote/entities=1/callers=0", 0.7},
	{"1,000 entities elsewhere in turn", "op=tell/place=remote/entities=1000/callers=0", 0.7},
	{"request to an entity elsewhere, 1 caller", "op=request/place=remote/entities=100/callers=1",
		0},
	{"100 callers", "op=request/place=remote/entities=100/callers=100", 0},
	{"start of an entity here by a request, 1,000 callers",
		"op=start/place=local/entities=0/callers=1000", 0},
}

// shardsTable returns the tables of a file of results in Markdown.
func shardsTable(file string) (string, error) {
	at, head, err := measured(file, "bench-peers-sharding")
	if err != nil || len(at) == 0 {
		return head, err
	}
	var b strings.Builder
	b.WriteString(head)
	for _, r := range shardRows {
		b.WriteString(row{title: r.title, work: r.work, pekko: 1, bare: r.bare}.line(at))
	}
	b.WriteString("\n| less is better | Concord | Pekko | bare Proto.Actor | ahead of Pekko |\n|---|---|---|---|---|\n")
	for _, r := range lessRows {
		b.WriteString(r.line(at))
	}
	return b.String(), nil
}

// lessRow is a row of the second table, where less is better.
type lessRow struct {
	title, work, unit, format string
	goal                      bool // at most Pekko's
}

var lessRows = []lessRow{
	{"heap of an idle entity", "op=idle", "heap-B/key", "%.0f B", true},
	{"longest time without an answer while a shard of 1,000 entities moves", moves, "dark-ms",
		"%.1f ms", true},
	{"the same in a fifth of a second before the move", moves, "still-ms", "%.1f ms", false},
	{"requests lost in all these moves", moves, "lost", "%.0f", true},
	{"all shards answer after a member was killed, timeout of 3 s", "op=kill/seconds=3",
		"s-to-host", "%.1f s", true},
	{"the same with the defaults", "op=kill/seconds=0", "s-to-host", "%.1f s", true},
}

const moves = "op=move/entities=1000"

// line returns a row of the table.
func (r lessRow) line(at map[string]point) string {
	var cells []string
	var numbers []float64
	for _, of := range []string{"concord", "pekko", "bare"} {
		m := at["BenchmarkPeers/of="+of+"/"+r.work].metrics
		text := "–"
		if n, ok := m[r.unit]; ok {
			text = fmt.Sprintf(r.format, n)
			numbers = append(numbers, n)
		}
		if least, most := m["min-"+r.unit], m["max-"+r.unit]; least < most {
			text += fmt.Sprintf(" (%.1f to %.1f)", least, most)
		}
		cells = append(cells, text)
	}
	verdict := ""
	switch {
	case !r.goal:
	case cells[0] == "–" || cells[1] == "–":
		verdict = "not measured"
	case numbers[0] > numbers[1]:
		verdict = "**missed**"
	default:
		verdict = "met"
	}
	return fmt.Sprintf("| %s | %s | %s |\n", r.title, strings.Join(cells, " | "), verdict)
}
