package testkit

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Probe is an actor that stores the messages it receives, in order and without limit. The test
// takes them in its own goroutine, which must be one that may call t.FailNow. PID, Send, Request,
// Ignore and Autopilot may be called from any goroutine.
//
// An expectation that is not met fails the test at once and prints everything the probe has
// received. The probe stops at the end of the test.
type Probe struct {
	// Timeout is the timeout of an expectation outside Within. NewProbe sets it to three seconds,
	// which are virtual in a bubble.
	Timeout time.Duration

	t        testing.TB
	system   *actor.ActorSystem
	pid      *actor.PID
	start    time.Time
	deadline time.Time // of the test binary; zero if there is none
	limit    time.Time // of Within; zero if there is none
	last     seen      // the message taken last
	at       int       // its index in seen

	mu struct {
		sync.Mutex
		seen    []seen // everything, in order
		changed chan struct{}
		ignore  func(any) bool
		pilot   func(actor.Context)
	}
}

// seen is a message with its fate.
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

// watch makes the probe's actor watch pid.
type watch struct{ pid *actor.PID }

// NewProbe spawns a probe in system. A probe made inside a synctest bubble belongs to the bubble.
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

// deadlineOf returns the deadline of the test binary minus the time to report a failure. It is zero
// in a bubble.
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

// keep records a message and returns the function that answers it, or nil.
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

// PID returns the PID of the probe.
func (p *Probe) PID() *actor.PID { return p.pid }

// Send sends msg without a sender.
func (p *Probe) Send(to *actor.PID, msg any) { p.system.Root.Send(to, msg) }

// Request sends msg with the probe as its sender.
func (p *Probe) Request(to *actor.PID, msg any) {
	p.system.Root.RequestWithCustomSender(to, msg, p.pid)
}

// Sender returns the sender of the message taken last, or nil if it has none.
func (p *Probe) Sender() *actor.PID { return p.last.sender }

// Reply answers the message taken last, with the probe as sender.
func (p *Probe) Reply(msg any) {
	p.t.Helper()
	if p.last.sender == nil {
		p.failf("nobody to reply to: the message taken last, %s, has no sender",
			describe(p.last.message))
		return
	}
	p.Request(p.last.sender, msg)
}

// Forward forwards the message taken last, with its sender.
func (p *Probe) Forward(to *actor.PID) {
	p.t.Helper()
	if p.last.fate == "" {
		p.failf("nothing to forward: no message has been taken")
		return
	}
	p.system.Root.RequestWithCustomSender(to, p.last.message, p.last.sender)
}

// Ignore makes expectations skip messages for which f returns true, including messages already
// received. Failure reports still list them. A later call replaces f; nil removes it.
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

// Autopilot makes the probe's actor also handle messages that arrive from now on with f. A later
// call replaces f; nil removes it.
func (p *Probe) Autopilot(f func(ctx actor.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.pilot = f
}

// failf fails the test and lists the received messages.
func (p *Probe) failf(format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("probe %s: %s\n%s", name(p.pid), fmt.Sprintf(format, args...), p.story())
}

// most is the maximum number of messages in a failure report.
const most = 100

// story lists the messages the probe has received.
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
		fmt.Fprintf(&b, "\n  %3d  %8s  %-7s  %s from %s", from+i+1, short(s.after), s.fate,
			describe(s.message), name(s.sender))
	}
	return b.String()
}
