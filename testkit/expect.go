package testkit

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
)

// Expect takes the next message, which must be an M, and returns it.
func Expect[M any](p *Probe) M {
	p.t.Helper()
	start := time.Now()
	s, ok := p.take(p.until())
	if !ok {
		p.failf("expected %s, got nothing for %s", typeName[M](), short(time.Since(start)))
		var none M
		return none
	}
	m, ok := s.message.(M)
	if !ok {
		p.failf("expected %s, got %s", typeName[M](), describe(s.message))
	}
	return m
}

// ExpectAllOf takes as many messages as there are arguments. They must equal the arguments, in any
// order: protobuf messages by proto.Equal, all others by reflect.DeepEqual. With one argument it
// expects the next message to have that value. Together the messages have the timeout of one
// expectation.
func (p *Probe) ExpectAllOf(want ...any) {
	p.t.Helper()
	start, until := time.Now(), p.until()
	for missing := slices.Clone(want); len(missing) > 0; {
		s, ok := p.take(until)
		if !ok {
			p.failf("expected %s, got nothing more for %s", describeAll(missing),
				short(time.Since(start)))
			return
		}
		i := slices.IndexFunc(missing, func(w any) bool { return equal(w, s.message) })
		if i < 0 {
			p.failf("expected %s, got %s", describeAll(missing), describe(s.message))
			return
		}
		missing = slices.Delete(missing, i, i+1)
	}
}

// ExpectAnyOf takes the next message, which must equal one of the arguments as in ExpectAllOf, and
// returns it.
func (p *Probe) ExpectAnyOf(want ...any) any {
	p.t.Helper()
	got := Expect[any](p)
	if !slices.ContainsFunc(want, func(w any) bool { return equal(w, got) }) {
		p.failf("expected one of %s, got %s", describeAll(want), describe(got))
	}
	return got
}

func equal(a, b any) bool {
	if m, ok := a.(proto.Message); ok {
		o, ok := b.(proto.Message)
		return ok && proto.Equal(m, o)
	}
	return reflect.DeepEqual(a, b)
}

func describeAll(messages []any) string {
	var out []string
	for _, m := range messages {
		out = append(out, describe(m))
	}
	return strings.Join(out, ", ")
}

// Poll takes the next message if there is one. It never fails.
func (p *Probe) Poll() (msg any, ok bool) {
	s, _, ok := p.tryTake(func(any) bool { return true })
	return s.message, ok
}

// ExpectNone expects that no message arrives for d.
func (p *Probe) ExpectNone(d time.Duration) {
	p.t.Helper()
	start := time.Now()
	if s, ok := p.take(start.Add(d)); ok {
		p.failf("expected nothing for %s, got %s after %s", short(d), describe(s.message),
			short(time.Since(start)))
	}
}

// Receive takes the next n messages. Together they have the timeout of one expectation.
func (p *Probe) Receive(n int) []any {
	p.t.Helper()
	start, until := time.Now(), p.until()
	out := make([]any, 0, n)
	for len(out) < n {
		s, ok := p.take(until)
		if !ok {
			p.failf("expected %d messages, got %d in %s", n, len(out), short(time.Since(start)))
			return out
		}
		out = append(out, s.message)
	}
	return out
}

// Outcome determines what Fish does with a message.
type Outcome int

// The outcomes of a message in Fish.
const (
	Continue Outcome = iota // skip it
	Collect                 // return it, and continue
	Done                    // return it as the last one
	Leave                   // end without it: the next expectation takes it
	Unwanted                // fail the test
)

// Fish takes messages until judge returns Done or Leave, and returns the collected ones including
// the one that is Done. Messages of types other than M are skipped; Fish[any] judges all. The whole
// call has the timeout of one expectation.
func Fish[M any](p *Probe, judge func(M) Outcome) []M {
	p.t.Helper()
	start, until := time.Now(), p.until()
	var out []M
	for taken := 0; ; taken++ {
		s, ok := p.take(until)
		if !ok {
			p.failf("fished for %s for %s in vain: collected %d of %d messages, and none was the last",
				typeName[M](), short(time.Since(start)), len(out), taken)
			return out
		}
		m, ok := s.message.(M)
		if !ok {
			continue
		}
		switch judge(m) {
		case Collect:
			out = append(out, m)
		case Done:
			return append(out, m)
		case Leave:
			p.untake()
			return out
		case Unwanted:
			p.failf("fished for %s and caught an unwanted message: %s", typeName[M](), describe(m))
			return out
		case Continue:
		}
	}
}

// Within limits the total time of all expectations of the probe in f to d. It fails if f takes
// longer, and returns the time that f took, for tests that require a minimum too. An outer Within
// remains in force.
func (p *Probe) Within(d time.Duration, f func()) (took time.Duration) {
	p.t.Helper()
	start, outer := time.Now(), p.limit
	if limit := start.Add(d); outer.IsZero() || limit.Before(outer) {
		p.limit = limit
	}
	defer func() { p.limit = outer }()
	f()
	if took = time.Since(start); took > d {
		p.failf("expected to be done within %s, took %s", short(d), short(took))
	}
	return took
}

// Remaining returns the timeout of the next expectation.
func (p *Probe) Remaining() time.Duration { return max(0, time.Until(p.until())) }

// Watch makes the probe watch an actor of its own system.
func (p *Probe) Watch(pid *actor.PID) {
	p.t.Helper()
	if !p.local(pid) {
		p.failf("cannot watch %s: Watch does not reach other systems here", name(pid))
		return
	}
	p.system.Root.Send(p.pid, &watch{pid})
}

// ExpectTerminated waits until a watched actor has stopped. It leaves other messages in place. It
// also detects an actor that stopped before Watch, which some versions of Proto.Actor do not
// report.
func (p *Probe) ExpectTerminated(pid *actor.PID) {
	p.t.Helper()
	start, until := time.Now(), p.until()
	of := func(m any) bool {
		t, ok := m.(*actor.Terminated)
		return ok && t.Who.Equal(pid)
	}
	for over := false; !over; over = !time.Now().Before(until) {
		// A stopped actor is removed from the registry shortly before its watchers are notified.
		gone := !p.exists(pid)
		if _, ok := p.takeIf(soonest(until, time.Now().Add(terminationGap)), of); ok || gone {
			return
		}
	}
	p.failf("expected %s to stop, it is still there after %s", name(pid), short(time.Since(start)))
}

const terminationGap = 50 * time.Millisecond

func (p *Probe) local(pid *actor.PID) bool {
	return pid.Address == p.system.Address() || pid.Address == "nonhost"
}

func (p *Probe) exists(pid *actor.PID) bool {
	_, ok := p.system.ProcessRegistry.GetLocal(pid.Id)
	return ok
}

// until returns the deadline of the next expectation.
func (p *Probe) until() time.Time {
	at := time.Now().Add(p.Timeout)
	if !p.limit.IsZero() {
		at = p.limit
	}
	return soonest(at, p.deadline)
}

// soonest returns the earlier time, ignoring a zero b.
func soonest(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

func (p *Probe) take(until time.Time) (seen, bool) {
	return p.takeIf(until, func(any) bool { return true })
}

// takeIf takes the first waiting message for which wanted returns true.
func (p *Probe) takeIf(until time.Time, wanted func(any) bool) (seen, bool) {
	timer := time.NewTimer(max(time.Until(until), 1))
	defer timer.Stop()
	for over := false; ; {
		s, changed, ok := p.tryTake(wanted)
		if ok || over {
			return s, ok
		}
		select {
		case <-changed:
		case <-timer.C:
			over = true // but a message that arrived at the last moment counts
		}
	}
}

func (p *Probe) tryTake(wanted func(any) bool) (seen, <-chan struct{}, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.mu.seen {
		s := &p.mu.seen[i]
		if s.fate == waiting && wanted(s.message) {
			s.fate = taken
			p.last, p.at = *s, i
			return *s, nil, true
		}
	}
	return seen{}, p.mu.changed, false
}

// untake puts the message taken last back.
func (p *Probe) untake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.seen[p.at].fate = waiting
}
