// Plot draws the results of make bench-peers as SVG with logarithmic axes in docs/pictures, and
// writes their tables into docs/performance.md, those of its siblings beside their results. Run it
// with go run ./lab/bench/plot from the root of the module. It reads lab/bench/results.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// point is one line of a benchmark: its name, and its results by unit.
type point struct {
	name    string
	metrics map[string]float64
}

// read returns the benchmark lines of a file of results.
func read(file string) ([]point, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []point
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		p := point{words[0], map[string]float64{}}
		for i := 2; i+1 < len(words); i += 2 {
			n, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", file, lines.Text(), err)
			}
			p.metrics[words[i+1]] = n
		}
		out = append(out, p)
	}
	return out, lines.Err()
}

// dimension returns the number of a dimension in the name: for members in
// Benchmark/members=30/case=rest it returns 30.
func (p point) dimension(x string) (float64, bool) {
	for part := range strings.SplitSeq(p.name, "/") {
		if v, ok := strings.CutPrefix(part, x+"="); ok {
			n, err := strconv.ParseFloat(v, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// line returns the points of the lines whose names contain every word of what. A name ends with a
// slash for this.
func (s series) line(x string) (l line, err error) {
	l.label = s.label
	const unit = "ops/s"
	all, err := read("lab/bench/results/peers.txt")
	for _, p := range all {
		n, ok := p.dimension(x)
		y, has := p.metrics[unit]
		if !ok || !has || y <= 0 || !containsAll(p.name+"/", strings.Fields(s.what)) {
			continue
		}
		l.xs, l.ys = append(l.xs, n), append(l.ys, y)
		if low := p.metrics["min-"+unit]; low > 0 {
			l.lows, l.highs = append(l.lows, low), append(l.highs, p.metrics["max-"+unit])
		}
	}
	return l, err
}

func containsAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func main() {
	for _, p := range peersPlots {
		svg, err := p.draw()
		if errors.Is(err, errNoResults) {
			fmt.Fprintln(os.Stderr, "plot:", err)
			continue // make bench-peers has not been run for this picture
		}
		if err == nil {
			err = os.WriteFile(filepath.Join("docs/pictures", p.file+".svg"), []byte(svg), 0o644)
		}
		exitOn(err)
	}
	exitOn(writePages())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}
