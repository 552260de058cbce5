package child

import (
	"bytes"
	"strings"
	"sync"
)

// Screen collects the output of any number of goroutines. The zero value is empty.
type Screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String returns the output so far.
func (s *Screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// With returns the lines so far that contain text.
func (s *Screen) With(text string) (lines []string) {
	for line := range strings.Lines(s.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}
