package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// mergeCase is a case that JMH measures for Pekko, and Go's benchmarks for this library.
type mergeCase struct{ title, name string }

var mergeCases = []mergeCase{
	{"two adds, then merge with the state before", "ORSetMerge/sameNode"},
	{"merge, the other one add ahead", "ORSetMerge/otherNode"},
	{"merge, both one add ahead", "ORSetMerge/bothNodes"},
	{"the same, one of them decoded", "ORSetMerge/bothDecoded"},
	{"merge, adds and a remove on both sides", "ORSetMerge/complex"},
	{"vector of five replicas: increment", "VersionVector/increment"},
	{"compare equal vectors built apart", "VersionVector/compareSame"},
	{"compare with a vector that it covers", "VersionVector/compareAfter"},
	{"merge, the other one ahead", "VersionVector/merge"},
	{"merge, both ahead", "VersionVector/mergeConcurrent"},
}

// elements matches the last part of a benchmark's name, which Go ends with the number of
// processors.
var elements = regexp.MustCompile(`/(?:elems|replicas)=(\d+)(?:-\d+)?$`)

// mergesTable returns the table of make bench-pekko in Markdown.
func mergesTable(file string) (string, error) {
	points, err := read(file)
	if err != nil {
		return "", err
	}
	if len(points) == 0 {
		return "Not measured yet: run `make bench-pekko`.\n", nil
	}
	about, err := comments(file)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n| | elements | Pekko | here | Pekko's time to ours | bytes, allocations here |\n|---|---|---|---|---|---|\n", strings.Join(about, "; "))
	for _, c := range mergeCases {
		pekko, ours := map[string][]point{}, map[string][]point{}
		var sizes []string
		for _, p := range points {
			size := elements.FindStringSubmatch(p.name)
			if size == nil {
				continue
			}
			switch elements.ReplaceAllString(p.name, "") {
			case "BenchmarkPekko_" + c.name:
				pekko[size[1]] = append(pekko[size[1]], p)
			case "BenchmarkPeers_" + c.name:
				ours[size[1]] = append(ours[size[1]], p)
			default:
				continue
			}
			if !slices.Contains(sizes, size[1]) {
				sizes = append(sizes, size[1])
			}
		}
		if len(sizes) > 0 { // the last one is the largest
			size := sizes[len(sizes)-1]
			b.WriteString(c.line(size, pekko[size], ours[size]))
		}
	}
	return b.String(), nil
}

// line returns the row of a number of elements.
func (c mergeCase) line(size string, pekko, ours []point) string {
	theirs, here, times, memory := "–", "–", "", ""
	if len(pekko) > 0 {
		m := pekko[0].metrics
		theirs = duration(m["ns/op"])
	}
	if len(ours) > 0 {
		all := make([]float64, len(ours))
		for i, p := range ours {
			all[i] = p.metrics["ns/op"]
		}
		slices.Sort(all)
		here = duration(all[len(all)/2])
		memory = fmt.Sprintf("%.0f B, %.0f", ours[0].metrics["B/op"], ours[0].metrics["allocs/op"])
		if len(pekko) > 0 {
			times = fmt.Sprintf("%.2f", pekko[0].metrics["ns/op"]/all[len(all)/2])
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", c.title, size, theirs, here,
		times, memory)
}
