package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// width is the assumed width of a terminal.
const width = 80

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

// table writes rows in columns that fit the width. A head that begins with a minus marks a column
// that is right-aligned. A head that begins with a plus marks the column that is shortened if the
// rows are too wide.
func table(out io.Writer, heads []string, rows [][]string) {
	wide := make([]int, len(heads))
	names, right, elastic := make([]string, len(heads)), make([]bool, len(heads)), 0
	for i, h := range heads {
		names[i] = strings.TrimLeft(h, "+-")
		right[i] = strings.HasPrefix(h, "-")
		if strings.HasPrefix(h, "+") {
			elastic = i
		}
		wide[i] = utf8.RuneCountInString(names[i])
	}
	clean := make([][]string, len(rows))
	for n, row := range rows {
		for i, cell := range row {
			cell = printable(cell)
			clean[n] = append(clean[n], cell)
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	sum := 2 * (len(heads) - 1)
	for _, w := range wide {
		sum += w
	}
	if sum > width {
		wide[elastic] = max(8, wide[elastic]-(sum-width))
	}
	line(out, names, wide, right)
	for _, row := range clean {
		line(out, row, wide, right)
	}
}

func line(out io.Writer, cells []string, wide []int, right []bool) {
	var b strings.Builder
	for i, cell := range cells {
		cell = cut(cell, wide[i])
		pad := strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell))
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
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	head := (most - 1) / 2
	return string(r[:head]) + "…" + string(r[len(r)-(most-1-head):])
}

// wrap writes a paragraph in lines that fit the width.
func wrap(out io.Writer, first, rest, text string) {
	at := first
	used := utf8.RuneCountInString(first)
	for i, word := range strings.Fields(printable(text)) {
		n := utf8.RuneCountInString(word)
		if i > 0 && used+1+n > width {
			fmt.Fprintln(out, at)
			at, used = rest+word, utf8.RuneCountInString(rest)+n
			continue
		}
		if i > 0 {
			at += " "
			used++
		}
		at += word
		used += n
	}
	fmt.Fprintln(out, at)
}

func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
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
