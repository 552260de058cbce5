package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// terminal is the assumed width of a terminal, in columns.
const terminal = 80

// printable replaces control characters and other unprintable characters. Names come from users,
// and must not move the cursor of the terminal or imitate other output.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '�'
	}, s)
}

// columns returns the number of columns of a terminal that a printable text takes.
func columns(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// table writes rows in columns that fit the terminal. A head that begins with a minus marks a
// column of figures, which is right-aligned and never shortened. A head that begins with a plus
// marks the column that is shortened first if the rows are too wide.
func table(out io.Writer, heads []string, rows [][]string) {
	wide := make([]int, len(heads))
	names, right, elastic := make([]string, len(heads)), make([]bool, len(heads)), 0
	for i, h := range heads {
		names[i] = strings.TrimLeft(h, "+-")
		right[i] = strings.HasPrefix(h, "-")
		if strings.HasPrefix(h, "+") {
			elastic = i
		}
		wide[i] = columns(names[i])
	}
	clean := make([][]string, len(rows))
	for n, row := range rows {
		for i, cell := range row {
			cell = printable(cell)
			clean[n] = append(clean[n], cell)
			wide[i] = max(wide[i], columns(cell))
		}
	}
	shrink(wide, right, elastic)
	line(out, names, wide, right)
	for _, row := range clean {
		line(out, row, wide, right)
	}
}

// Lower limits of the width of columns: of the elastic one while others are wider, and of all.
const (
	enough = 24
	least  = 4
)

// shrink makes columns narrower until the rows fit the terminal: the elastic column while it is
// wide enough, then the widest that is not right-aligned.
func shrink(wide []int, right []bool, elastic int) {
	sum := 2 * (len(wide) - 1)
	for _, w := range wide {
		sum += w
	}
	for ; sum > terminal; sum-- {
		widest := elastic
		for i, w := range wide {
			if wide[elastic] <= enough && !right[i] && w > wide[widest] {
				widest = i
			}
		}
		if wide[widest] <= least {
			return
		}
		wide[widest]--
	}
}

func line(out io.Writer, cells []string, wide []int, right []bool) {
	var b strings.Builder
	for i, cell := range cells {
		cell = cut(cell, wide[i])
		pad := strings.Repeat(" ", wide[i]-columns(cell))
		if right[i] {
			cell, pad = pad+cell, ""
		}
		b.WriteString(cell + pad)
		if i < len(cells)-1 {
			b.WriteString("  ")
		}
	}
	fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
}

// cut shortens a cell in the middle, because names usually differ at the beginning or the end.
func cut(s string, most int) string {
	if columns(s) <= most {
		return s
	}
	r := []rune(s)
	head, _ := fill(r, (most-1)/2)
	slices.Reverse(r)
	tail, _ := fill(r, most-1-(most-1)/2)
	slices.Reverse(tail)
	for len(tail) > 0 && columnsOf(tail[0]) == 0 { // its letter has been cut off
		tail = tail[1:]
	}
	return string(head) + "…" + string(tail)
}

// fill returns a copy of the longest beginning of r that fits into n columns, and what follows it.
func fill(r []rune, n int) (head, rest []rune) {
	i := 0
	for i < len(r) && n >= columnsOf(r[i]) {
		n -= columnsOf(r[i])
		i++
	}
	return slices.Clone(r[:i]), r[i:]
}

// wrap writes a paragraph in lines that fit the terminal. It breaks words that are longer than a
// line.
func wrap(out io.Writer, first, rest, text string) {
	at, empty := first, true
	next := func() {
		fmt.Fprintln(out, at)
		at, empty = rest, true
	}
	for word := range strings.FieldsSeq(printable(text)) {
		if !empty && columns(at)+1+columns(word) > terminal {
			next()
		}
		if !empty {
			at += " "
		}
		left := []rune(word)
		for columns(at)+columns(string(left)) > terminal {
			var head []rune
			head, left = fill(left, terminal-columns(at))
			at += string(head)
			next()
		}
		at, empty = at+string(left), false
	}
	fmt.Fprintln(out, at)
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// plural returns a number with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func size(n float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if n < 999.5 {
			if n < 10 && unit != "B" {
				return fmt.Sprintf("%.1f %s", n, unit)
			}
			return fmt.Sprintf("%.0f %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.1f TB", n)
}

func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return d.Round(time.Minute).String()
}
