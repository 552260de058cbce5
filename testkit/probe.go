package testkit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Probe is an actor that keeps what it receives, in order and without limit, for a test to take out.
// Received messages are taken in the goroutine of the test, which must be the one that may call
// t.FailNow; PID, Send, Request, Ignore and Autopilot may be used from any goroutine.
//
// An expectation that is not met fails the test at once and prints everything the probe has seen. The
// probe stops with the test.
type Probe struct {
	// Timeout is how long an expectation waits outside Within. NewProbe sets it to three seconds, which
	// are virtual in a bubble.
	Timeout time.Duration

	t        testing.TB
	system   *actor.ActorSystem
	pid      *actor.PID
	start    time.Time
	deadline time.Time // of the test binary; zero: none
	limit    time.Time // of Within; zero: none
	last     seen      // what was taken last

	mu struct {
		sync.Mutex
		seen    []seen // everything, in order
		changed chan struct{}
		ignore  func(any) bool
		pilot   func(actor.Context)
	}
}

// seen is a message, and what became of it.
type seen struct {
	message any
	sender  *actor.PID
	after   time.Duration
	fate    fate
}

type fate string

const (
	waiting fate = "waiting"
	taken   fate = "taken"
	ignored fate = "ignored"
)

// watch asks the probe's actor to watch.
type watch struct{ pid *actor.PID }

// NewProbe spawns a probe in system. Made inside a synctest bubble, it belongs to the bubble.
func NewProbe(t testing.TB, system *actor.ActorSystem) *Probe {
	t.Helper()
	p := &Probe{t: t, system: system, Timeout: patience, start: time.Now(), deadline: deadlineOf(t)}
	p.mu.changed = make(chan struct{})
	p.pid = system.Root.SpawnPrefix(actor.PropsFromFunc(p.receive), "probe")
	t.Cleanup(func() { system.Root.Stop(p.pid) })
	return p
}

// patience is the default timeout of expectations.
const patience = 3 * time.Second

// deadlineOf is when the test binary gives up, less time to say why. In a bubble it is not told.
func deadlineOf(t testing.TB) (at time.Time) {
	defer func() { _ = recover() }() // t.Deadline panics in a bubble
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			at = end.Add(-time.Second)
		}
	}
	return at
}

func (p *Probe) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *watch:
		ctx.Watch(m.pid)
	case *actor.Terminated:
		p.keep(m, m.Who)
	case actor.SystemMessage, actor.AutoReceiveMessage:
	default:
		if pilot := p.keep(m, ctx.Sender()); pilot != nil {
			pilot(ctx)
		}
	}
}

// keep notes a message and returns who is to answer it.
func (p *Probe) keep(message any, sender *actor.PID) (pilot func(actor.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := seen{message, sender, time.Since(p.start), waiting}
	if p.mu.ignore != nil && p.mu.ignore(message) {
		s.fate = ignored
	}
	p.mu.seen = append(p.mu.seen, s)
	close(p.mu.changed)
	p.mu.changed = make(chan struct{})
	return p.mu.pilot
}

// PID is where the probe receives.
func (p *Probe) PID() *actor.PID { return p.pid }

// Send sends msg, with nobody as its sender.
func (p *Probe) Send(to *actor.PID, msg any) { p.system.Root.Send(to, msg) }

// Request sends msg with the probe as its sender.
func (p *Probe) Request(to *actor.PID, msg any) {
	p.system.Root.RequestWithCustomSender(to, msg, p.pid)
}

// Sender is who sent the message taken last; nil if nobody did.
func (p *Probe) Sender() *actor.PID { return p.last.sender }

// Reply answers the message taken last, with the probe as the sender.
func (p *Probe) Reply(msg any) {
	p.t.Helper()
	if p.last.sender == nil {
		p.failf("nobody to reply to: the message taken last, %s, has no sender", describe(p.last.message))
		return
	}
	p.Request(p.last.sender, msg)
}

// Forward sends the message taken last on, with its sender.
func (p *Probe) Forward(to *actor.PID) {
	p.t.Helper()
	if p.last.fate == "" {
		p.failf("nothing to forward: no message has been taken")
		return
	}
	p.system.Root.RequestWithCustomSender(to, p.last.message, p.last.sender)
}

// Ignore passes over messages for which f is true, also those that wait. They are listed in failures. A
// later call replaces f; nil ignores nothing any more.
func (p *Probe) Ignore(f func(msg any) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.ignore = f
	for i := range p.mu.seen {
		if s := &p.mu.seen[i]; f != nil && s.fate == waiting && f(s.message) {
			s.fate = ignored
		}
	}
}

// Autopilot lets the probe's actor handle messages that arrive from now on with f, besides keeping them.
// A later call replaces f; nil ends it.
func (p *Probe) Autopilot(f func(ctx actor.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.pilot = f
}

// failf fails the test and tells what was seen.
func (p *Probe) failf(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("probe %s: %s\n%s", name(p.pid), fmt.Sprintf(format, args...), p.story())
}

// most is how many messages a failure lists.
const most = 100

// story lists what the probe has seen.
func (p *Probe) story() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.seen) == 0 {
		return "It has seen nothing."
	}
	var b strings.Builder
	b.WriteString("It has seen, in order:")
	from := max(0, len(p.mu.seen)-most)
	if from > 0 {
		fmt.Fprintf(&b, "\n  … %d earlier ones", from)
	}
	for i, s := range p.mu.seen[from:] {
		fmt.Fprintf(&b, "\n  %3d  %8s  %-7s  %s from %s", from+i+1, short(s.after), s.fate, describe(s.message), name(s.sender))
	}
	return b.String()
}
