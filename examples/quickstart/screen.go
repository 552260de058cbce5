package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen displays progress: lines, and below them a progress bar if the output is a terminal.
// Otherwise the bar is an occasional line.
type screen struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	bar   string
	tenth int
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	return &screen{out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0 &&
		os.Getenv("TERM") != "dumb"}
}

// line writes a line above the bar.
func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintf(s.out, format+"\n", args...)
	s.draw()
}

func (s *screen) clear() {
	if s.terminal && s.bar != "" {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
}

func (s *screen) draw() {
	if s.terminal && s.bar != "" {
		fmt.Fprint(s.out, s.bar)
	}
}

// progress updates the bar.
func (s *screen) progress(done, total int64, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if total == 0 {
		return
	}
	rate := float64(done) / max(time.Since(since).Seconds(), 0.001)
	if !s.terminal {
		if tenth := int(done * 10 / total); tenth > s.tenth {
			s.tenth = tenth
			fmt.Fprintf(s.out, "  %3d %% %d of %d events, %.0f events/s\n", tenth*10, done,
				total, rate)
		}
		return
	}
	const width = 30
	full := int(done * width / total)
	s.clear()
	s.bar = fmt.Sprintf("  [%s%s] %d of %d events, %.0f events/s", strings.Repeat("█", full),
		strings.Repeat("░", width-full), done, total, rate)
	s.draw()
}

// endProgress leaves the bar on the screen.
func (s *screen) endProgress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal && s.bar != "" {
		fmt.Fprintln(s.out)
	}
	s.bar = ""
}

// table prints rows of a name and a value.
func (s *screen) table(rows [][2]string) {
	wide := 0
	for _, r := range rows {
		wide = max(wide, len(r[0]))
	}
	for _, r := range rows {
		s.line("  %-*s  %s", wide, r[0], r[1])
	}
}
