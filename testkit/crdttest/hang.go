package crdttest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"pgregory.net/rapid"
)

// patience is the time that one step of a history may take.
const patience = 10 * time.Second

// running is what the histories are doing.
type running struct {
	mu    sync.Mutex
	now   string
	trace []string // of the history until now
	since time.Time
	over  bool // the test has failed: the goroutine of the histories must not touch it any more
}

// doing begins a part of a history, after what trace says.
func (r *running) doing(what string, trace []string) {
	r.mu.Lock()
	over := r.over
	r.now, r.trace, r.since = what, trace, time.Now()
	r.mu.Unlock()
	if over {
		select {} // a method that seemed to hang has returned after all
	}
}

// wait returns "" when done is closed, or describes a part that takes longer than limit.
func (r *running) wait(done <-chan struct{}, limit time.Duration) string {
	poll := time.NewTicker(limit / 10)
	defer poll.Stop()
	for {
		select {
		case <-done:
			return ""
		case <-poll.C:
		}
		if hung := r.hung(limit); hung != "" {
			return hung
		}
	}
}

func (r *running) hung(limit time.Duration) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	took := time.Since(r.since)
	if took <= limit {
		return ""
	}
	r.over = true
	return fmt.Sprintf("a %s takes longer than %s, after this %s\nIt is in\n%s", r.now,
		limit.Round(time.Second), story(r.trace), stack())
}

// stack returns the stack of the goroutine that runs a history.
func stack() string {
	buf := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "rapid.checkTB(") {
			return g
		}
	}
	return ""
}

// limitOf returns the patience, or less if the test binary ends earlier.
func limitOf(t rapid.TB) time.Duration {
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			return max(time.Second, min(patience, time.Until(end)-2*time.Second))
		}
	}
	return patience
}
