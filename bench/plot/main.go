// Plot draws benchmark results as SVG with logarithmic axes. Run it with go run ./bench/plot from
// the root of the module. It reads bench/results and writes docs/pictures.
package main

import (
	"bufio"
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

// points returns x and y of the lines whose names contain what.
func (s series) points(x string) (xs, ys []float64, err error) {
	all, err := read(filepath.Join("bench/results", s.file))
	for _, p := range all {
		n, ok := p.dimension(x)
		if y, has := p.metrics[s.unit]; ok && has && y > 0 && strings.Contains(p.name, s.what) {
			if s.total {
				y *= n
			}
			xs, ys = append(xs, n), append(ys, y)
		}
	}
	return xs, ys, err
}

func main() {
	for _, p := range plots {
		svg, err := p.draw()
		if err == nil {
			err = os.WriteFile(filepath.Join("docs/pictures", p.file+".svg"), []byte(svg), 0o644) //nolint:gosec // readable by all
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "plot:", err)
			os.Exit(1)
		}
	}
}
