package testkit_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a testing.TB that records failures instead of failing.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	logs     []string
	cleanups []func()
}

func (r *recorder) Helper()      {}
func (r *recorder) Name() string { return "recorded" }

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs = append(r.logs, fmt.Sprintf(format, args...))
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

// failing runs test, which must fail once, and returns the failure message.
func failing(t *testing.T, test func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for _, f := range slices.Backward(r.cleanups) {
				f()
			}
		}()
		test(r)
	}()
	<-done
	if len(r.failures) != 1 {
		t.Fatalf("failed %d times, expected once: %q", len(r.failures), r.failures)
	}
	return r.failures[0]
}

// says requires that a failure message contains the parts in order.
func says(t *testing.T, failure string, parts ...string) {
	t.Helper()
	rest := failure
	for _, p := range parts {
		_, after, ok := strings.Cut(rest, p)
		if !ok {
			t.Fatalf("failure does not say %q (in this order: %q), but:\n%s", p, parts, failure)
		}
		rest = after
	}
}
