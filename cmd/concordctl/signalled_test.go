package main

import (
	"bytes"
	"strings"
	"sync"
)

// signalled is a writer that carries out steps, each once and in order, as its output grows.
type signalled struct {
	steps []step

	mu  sync.Mutex
	buf bytes.Buffer
}

// step is what to do once the output contains a text.
type step struct {
	want string
	seen func()
}

func (s *signalled) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf.Write(p)
	for len(s.steps) > 0 && strings.Contains(s.buf.String(), s.steps[0].want) {
		s.steps[0].seen()
		s.steps = s.steps[1:]
	}
	return len(p), nil
}

func (s *signalled) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}
