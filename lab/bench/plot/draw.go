package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// The size of the picture in pixels, and the margins around its axes.
const (
	width, height            = 760, 420
	left, right, top, bottom = 70, 270, 40, 50
)

// plot is one picture of the results of make bench-peers.
type plot struct {
	file, title string
	x, xTitle   string // the dimension in the names of benchmarks
	yTitle      string
	series      []series
}

// series is one line of a plot: the operations a second in the lines of results whose names contain
// all words of what.
type series struct{ label, what string }

var errNoResults = errors.New("no results")

// draw returns the picture as SVG. The label of each line includes its slope. A point with a spread
// has a vertical line from its least to its greatest value.
func (p plot) draw() (string, error) {
	var lines []line
	x, y := newRange(), newRange()
	for _, s := range p.series {
		l, err := s.line(p.x)
		if err != nil {
			return "", err
		}
		if len(l.xs) < 2 {
			continue
		}
		x.take(l.xs)
		y.take(l.ys)
		y.take(l.lows)
		y.take(l.highs)
		lines = append(lines, l)
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("%s: %w", p.file, errNoResults)
	}
	x.round()
	y.round()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/><text x="%d" y="22" font-size="14">%s</text>`+"\n", width, height, left, p.title)
	fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text><text x="10" y="%d">%s</text>`+"\n",
		(left+width-right)/2, height-12, p.xTitle, top-6, p.yTitle)
	at := func(px, py float64) (float64, float64) {
		return left + x.part(px)*(width-left-right), height - bottom - y.part(
			py)*(height-top-bottom)
	}
	for d := x.low; d <= x.high; d++ {
		px, _ := at(math.Pow(10, d), 1)
		fmt.Fprintf(&b, `<path d="M%.0f %d V%d" stroke="#ddd"/><text x="%.0f" y="%d" text-anchor="middle">%s</text>`+"\n", px, top, height-bottom, px, height-bottom+16, decade(d))
	}
	for d := y.low; d <= y.high; d++ {
		_, py := at(1, math.Pow(10, d))
		fmt.Fprintf(&b, `<path d="M%d %.0f H%d" stroke="#ddd"/><text x="%d" y="%.0f" text-anchor="end">%s</text>`+"\n", left, py, width-right, left-6, py+4, decade(d))
	}
	for i, l := range lines {
		l.draw(&b, i, at)
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

func decade(d float64) string {
	if d >= -2 && d <= 5 {
		return fmt.Sprintf("%g", math.Pow(10, d))
	}
	return fmt.Sprintf("1e%g", d)
}

// span is the range of an axis, in decades.
type span struct{ low, high float64 }

func newRange() *span { return &span{math.Inf(1), math.Inf(-1)} }

func (s *span) take(all []float64) {
	for _, n := range all {
		s.low, s.high = min(s.low, math.Log10(n)), max(s.high, math.Log10(n))
	}
}

// round widens the range to whole decades.
func (s *span) round() {
	s.low, s.high = math.Floor(s.low), math.Ceil(s.high)
	if s.low == s.high {
		s.high++
	}
}

func (s *span) part(n float64) float64 { return (math.Log10(n) - s.low) / (s.high - s.low) }

type line struct {
	label       string
	xs, ys      []float64
	lows, highs []float64 // empty, or the spreads of all points
}

var colors = []string{"#9ecae1", "#08519c", "#fdae6b", "#a63603"}

func (l line) draw(b *strings.Builder, i int, at func(x, y float64) (float64, float64)) {
	color := colors[i%len(colors)]
	var path strings.Builder
	for j := range l.xs {
		x, y := at(l.xs[j], l.ys[j])
		fmt.Fprintf(&path, "%.1f,%.1f ", x, y)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, color)
		if len(l.lows) == len(l.xs) {
			_, low := at(l.xs[j], l.lows[j])
			_, high := at(l.xs[j], l.highs[j])
			fmt.Fprintf(b, `<path d="M%.1f %.1f V%.1f" stroke="%s"/>`+"\n", x, low, high, color)
		}
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
		strings.TrimSpace(path.String()), color)
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s: slope %.2f</text>`+"\n",
		width-right+16, top+22*i, color, width-right+34, top+22*i+10, l.label, slope(l.xs, l.ys))
}

// slope returns the slope of the regression line of the points with both axes logarithmic: 1 is
// linear.
func slope(xs, ys []float64) float64 {
	var sx, sy, sxx, sxy float64
	for i := range xs {
		x, y := math.Log(xs[i]), math.Log(ys[i])
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	n := float64(len(xs))
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
