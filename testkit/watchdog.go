package testkit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watchdog observes a bubble from outside, on the real clock. It ends the test binary if virtual
// time stands still for too long, because a goroutine of the test runs on forever, or waits for
// something outside the bubble: no other goroutine of the bubble can then report that. Inside the
// bubble, a goroutine counts the virtual seconds.
type watchdog struct {
	t       *testing.T
	over    chan struct{} // closed after the bubble
	stopped chan struct{} // closed at the end of guard

	id      atomic.Value // the string that identifies the bubble
	seconds atomic.Int64 // virtual
	asleep  atomic.Bool  // seconds is not updated

	// Only used inside the bubble.
	at    map[string]bool // the goroutines at the start of the bubble, by id
	quit  chan struct{}
	ended chan struct{}
}

const (
	// standstill is how long virtual time may stand still.
	standstill = time.Minute
	// watched is how much virtual time the watchdog observes. Afterwards it does not delay the
	// runtime's own report of a bubble in which all goroutines wait.
	watched = 24 * time.Hour
	// linger is the virtual time for which goroutines may run on after the test.
	linger = time.Hour
	// lingerSync is the same for a sync of a Disk, which lasts as long as the test has set.
	lingerSync = 100 * 365 * 24 * time.Hour
)

// guard starts a watchdog, which stop ends.
func guard(t *testing.T) *watchdog {
	w := &watchdog{t: t, over: make(chan struct{}), stopped: make(chan struct{})}
	w.asleep.Store(true)
	go w.watch(deadlineOf(t))
	return w
}

func (w *watchdog) stop() {
	close(w.over)
	<-w.stopped
}

// watch runs outside the bubble. The deadline is that of the test binary; the report comes before.
func (w *watchdog) watch(deadline time.Time) {
	defer close(w.stopped)
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	last, since := int64(-1), time.Now()
	for {
		select {
		case <-w.over:
			return
		case <-poll.C:
		}
		now := w.seconds.Load()
		if now != last || w.asleep.Load() {
			last, since = now, time.Now()
			continue
		}
		still := time.Since(since)
		if still > standstill || still > time.Second/2 && !deadline.IsZero() &&
			time.Until(deadline) < time.Second {
			panic(w.report(still))
		}
	}
}

// enter is called at the start of the bubble, inside it.
func (w *watchdog) enter() {
	w.id.Store(self().bubble)
	w.at = map[string]bool{}
	for _, g := range w.goroutines() {
		w.at[g.id] = true
	}
	w.quit, w.ended = make(chan struct{}), make(chan struct{})
	w.asleep.Store(false)
	go w.count()
}

func (w *watchdog) count() {
	defer close(w.ended)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for w.seconds.Load() < int64(watched/time.Second) {
		select {
		case <-tick.C:
			w.seconds.Add(1)
		case <-w.quit:
			return
		}
	}
	w.asleep.Store(true)
}

// leave is called at the end of the bubble, inside it. It waits until the other goroutines have
// ended, since the bubble must not end before: a dead letter leaves one that sleeps, and an actor
// may sleep in Receive. If some stay, it fails the test and names them; the runtime then ends the
// test binary.
func (w *watchdog) leave(t *testing.T) {
	synctest.Wait()
	for pause := 2 * time.Second; ; pause *= 2 {
		time.Sleep(pause)
		synctest.Wait()
		left := w.left()
		if len(left) > 0 && (pause < linger || pause < lingerSync && syncing(left)) {
			continue
		}
		close(w.quit)
		<-w.ended
		for _, g := range left {
			t.Errorf("a goroutine of the test has not ended: %s, in state %q\n%s", g.site(),
				g.status, g.stack)
		}
		return
	}
}

// syncing reports whether all goroutines wait for the sync of a disk.
func syncing(all []goroutine) bool {
	return !slices.ContainsFunc(all, func(g goroutine) bool {
		return !strings.Contains(g.stack, "(*diskStore).settle(")
	})
}

// left returns the goroutines that the test has started and that have not ended.
func (w *watchdog) left() []goroutine {
	return slices.DeleteFunc(w.goroutines(), func(g goroutine) bool {
		return w.at[g.id] || strings.Contains(g.stack, "(*watchdog).count(")
	})
}

// goroutines returns the goroutines of the bubble.
func (w *watchdog) goroutines() []goroutine {
	id := w.id.Load()
	return slices.DeleteFunc(dump(), func(g goroutine) bool { return g.bubble != id })
}

// report says which goroutines keep virtual time from moving.
func (w *watchdog) report(still time.Duration) string {
	seen, example, samples := map[string]int{}, map[string]goroutine{}, 0
	for end := time.Now().Add(time.Second / 2); samples < 50 && time.Now().Before(end); samples++ {
		now := map[string]goroutine{}
		for _, g := range w.goroutines() {
			if strings.HasSuffix(g.status, "(durable)") || strings.HasPrefix(g.status, "synctest") {
				continue
			}
			at := g.site()
			if at == "" {
				continue
			}
			name, _, _ := strings.Cut(at, " at ")
			now[name+" ["+kind(g.status)+"]"] = g
		}
		for name, g := range now {
			seen[name]++
			example[name] = g
		}
		time.Sleep(5 * time.Millisecond)
	}
	names := slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return seen[b] - seen[a] })
	var b strings.Builder
	fmt.Fprintf(&b, "testkit: %s: virtual time has stood still for %s. Time passes only while all "+
		"goroutines of the test wait for each other or for time; these did not:", w.t.Name(),
		short(still))
	for _, name := range names[:min(len(names), 5)] {
		fmt.Fprintf(&b, "\n  %s, in %d of %d samples, %s", name, seen[name], samples,
			example[name].site())
	}
	if len(names) > 0 {
		b.WriteString("\nThe first one:\n" + example[names[0]].stack)
	}
	return b.String()
}

// kind tells goroutines that run from those that wait for something outside the bubble.
func kind(status string) string {
	if status == "running" || status == "runnable" {
		return "runs"
	}
	return "waits outside the bubble: " + status
}
