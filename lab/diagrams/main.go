// Command diagrams draws the diagrams of the guides: each text file here becomes a picture in
// docs/pictures. A diagram is drawn as it is written, with box-drawing characters for lines,
// triangles for the heads of arrows, and words.
//
//	go run ./lab/diagrams
package main

import (
	"fmt"
	"html"
	"log"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

func main() {
	log.SetFlags(0)
	if err := run("lab/diagrams", "docs/pictures"); err != nil {
		log.Fatal(err)
	}
}

// run draws every diagram of a directory into another.
func run(from, to string) error {
	names, err := filepath.Glob(filepath.Join(from, "*.txt"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("diagrams: no *.txt in %s; run this in the root of the repository", from)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		svg, err := draw(string(text))
		if err != nil {
			return fmt.Errorf("diagrams: %s: %w", name, err)
		}
		picture := strings.TrimSuffix(filepath.Base(name), ".txt") + ".svg"
		if err := os.WriteFile(filepath.Join(to, picture), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// The size of a character, and the largest diagram.
const (
	width, height = 8, 18
	maxColumns    = 110
)

// The sides of its cell that a line meets.
const (
	left = 1 << iota
	right
	up
	down
)

var lines = map[rune]int{
	'─': left | right, '│': up | down,
	'┌': right | down, '┐': left | down, '└': right | up, '┘': left | up,
	'├': up | down | right, '┤': up | down | left, '┬': left | right | down, '┴': left | right | up,
	'┼': left | right | up | down,
	'▶': left, '◀': right, '▲': down, '▼': up,
}

// heads are the corners of the heads of arrows, from the centre of the cell.
var heads = map[rune]string{
	'▶': "-5 -4.5 L4 0 L-5 4.5 Z", '◀': "5 -4.5 L-4 0 L5 4.5 Z",
	'▲': "-4.5 5 L0 -5 L4.5 5 Z", '▼': "-4.5 -5 L0 5 L4.5 -5 Z",
}

// draw returns the picture of a diagram.
func draw(text string) (string, error) {
	rows, columns, err := grid(text)
	if err != nil {
		return "", err
	}
	w, h := columns*width, len(rows)*height
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d"`+
		` font-family="ui-monospace,Menlo,Consolas,monospace" font-size="13">`+"\n", w+20, h+20,
		w+20, h+20)
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n"+
		"<g transform=\"translate(10 10)\">\n", w+20, h+20)
	fmt.Fprintf(&b, "<path d=\"%s\" fill=\"none\" stroke=\"#456\" stroke-width=\"1.3\"/>\n",
		strokes(rows, columns))
	for y, row := range rows {
		for x, c := range row {
			if corners, ok := heads[c]; ok {
				fmt.Fprintf(&b, "<path transform=\"translate(%d %d)\" d=\"M%s\" fill=\"#456\"/>\n",
					x*width+width/2, y*height+height/2, corners)
			}
		}
	}
	for y, row := range rows {
		for _, s := range words(row) {
			// The length keeps words at their columns, whatever font the reader has.
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" textLength=\"%d\">%s</text>\n", s.at*width,
				y*height+13, utf8.RuneCountInString(s.text)*width, html.EscapeString(s.text))
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String(), nil
}

// grid returns the characters of a diagram by row, and the number of columns.
func grid(text string) (rows [][]rune, columns int, err error) {
	if !utf8.ValidString(text) {
		return nil, 0, fmt.Errorf("not UTF-8")
	}
	for y, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		row := []rune(line)
		for x, c := range row {
			if _, ok := lines[c]; !ok && (c < ' ' || c >= '─' && c <= '◿') {
				return nil, 0, fmt.Errorf("line %d, column %d: %q cannot be drawn", y+1, x+1, c)
			}
		}
		if len(row) > maxColumns {
			return nil, 0, fmt.Errorf("line %d has %d columns, above %d", y+1, len(row), maxColumns)
		}
		rows, columns = append(rows, row), max(columns, len(row))
	}
	return rows, columns, nil
}

// strokes returns the path of all lines, each as long as it can be.
func strokes(rows [][]rune, columns int) string {
	var b strings.Builder
	sides := func(x, y int) int {
		if x < len(rows[y]) {
			return lines[rows[y][x]]
		}
		return 0
	}
	// along draws the lines of one row or column of n cells. size is the length of a cell.
	along := func(n, size, before, after int, side func(i int) int, stroke func(from, to int)) {
		from := -1 // where the present line begins, in pixels
		for i := range n {
			s := side(i)
			middle := i*size + size/2
			if from >= 0 && s&before == 0 {
				stroke(from, i*size)
				from = -1
			}
			if from < 0 && s&before != 0 {
				from = i * size
			}
			if s&after == 0 && from >= 0 {
				stroke(from, middle)
				from = -1
			}
			if from < 0 && s&after != 0 {
				from = middle
			}
		}
		if from >= 0 {
			stroke(from, n*size)
		}
	}
	for y := range rows {
		along(columns, width, left, right, func(x int) int {
			return sides(x, y)
		}, func(from, to int) {
			fmt.Fprintf(&b, "M%d %dH%d", from, y*height+height/2, to)
		})
	}
	for x := range columns {
		along(len(rows), height, up, down, func(y int) int {
			return sides(x, y)
		}, func(from, to int) {
			fmt.Fprintf(&b, "M%d %dV%d", x*width+width/2, from, to)
		})
	}
	return b.String()
}

// span is a run of words in a row. Two spaces, or a line, end it.
type span struct {
	at   int
	text string
}

func words(row []rune) (all []span) {
	from := -1
	end := func(to int) {
		if from >= 0 {
			all = append(all, span{from, strings.TrimRight(string(row[from:to]), " ")})
		}
		from = -1
	}
	for x, c := range row {
		switch _, line := lines[c]; {
		case line, c == ' ' && x+1 < len(row) && row[x+1] == ' ':
			end(x)
		case c != ' ' && from < 0:
			from = x
		}
	}
	end(len(row))
	return all
}
