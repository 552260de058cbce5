package clustertest

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/races"
)

// process is a member process as seen by the test.
type process struct {
	*child.Process
	e      *env
	member Member

	mu    sync.Mutex
	lines []report
}

// launch starts a process that is not a member yet.
func (e *env) launch(m Member) *process {
	e.Helper()
	e.config.Prepare(e, m)
	arg, err := json.Marshal(order{m, min(2*e.config.ListedWithin+5*time.Second, limit/2)})
	e.must(err)
	p := &process{e: e, member: m}
	p.Process = child.Start(e, []string{childEnv + "=" + string(arg)}, p.hear)
	e.Cleanup(func() {
		p.Kill()
		p.races()
		if e.Failed() {
			e.Logf("member %d at %s, reports: %+v", m.Index, m.Address(), p.reports(""))
		}
	})
	return p
}

// hear collects reports.
func (p *process) hear(line []byte) {
	var r report
	if text, ok := bytes.CutPrefix(line, []byte(marker)); ok && json.Unmarshal(text, &r) == nil {
		p.mu.Lock()
		p.lines = append(p.lines, r)
		p.mu.Unlock()
	}
}

// races fails the test if the race detector has found races. The process must have ended.
func (p *process) races() {
	if p.e.config.Except[raceRule] != "" {
		return
	}
	for _, r := range races.Reported(p.Stderr()) {
		p.e.Errorf("%s: data race in member %d:\n%s", raceRule, p.member.Index, r)
	}
}

// kill sends SIGKILL.
func (p *process) kill() {
	p.Kill()
	p.e.config.Killed(p.e, p.member)
}

func (p *process) send(command string) {
	p.e.Helper()
	p.e.must(p.Say(command))
}

// answer waits for the report of one of the events after the first n such reports, where n is
// after.
func (p *process) answer(after int, events ...string) report {
	p.e.Helper()
	p.e.eventually(limit, func() bool { return len(p.answers(events)) > after || p.Ended() },
		"member %d does not answer", p.member.Index)
	if got := p.answers(events); len(got) > after {
		return got[after]
	}
	p.e.Fatalf("%s: the process of member %d has ended", p.e.rule, p.member.Index)
	return report{}
}

// tell sends a command and returns its answer, which is a report of one of the events.
func (p *process) tell(command string, events ...string) report {
	p.e.Helper()
	had := len(p.answers(events))
	p.send(command)
	return p.answer(had, events...)
}

func (p *process) answers(events []string) (out []report) {
	for _, r := range p.reports("") {
		if slices.Contains(events, r.Event) {
			out = append(out, r)
		}
	}
	return out
}

// start begins an incarnation, and fails the test if the incarnation does not start.
func (p *process) start() *process {
	p.e.Helper()
	p.isStarted(p.tell(cmdStart, evStarted, evFailed))
	return p
}

func (p *process) isStarted(r report) {
	p.e.Helper()
	if r.Event != evStarted {
		p.e.Fatalf("%s: member %d at %s does not start: %s", p.e.rule, p.member.Index,
			p.member.Address(), r.Text)
	}
}

// stop ends an incarnation gracefully.
func (p *process) stop() {
	p.e.Helper()
	if r := p.tell(cmdStop, evStopped); r.Text != "" {
		p.e.Fatalf("%s: member %d does not stop in order: %s", p.e.rule, p.member.Index, r.Text)
	}
}

// reports returns the reports so far, of one kind or, if event is "", of all kinds.
func (p *process) reports(event string) (out []report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.lines {
		if event == "" || r.Event == event {
			out = append(out, r)
		}
	}
	return out
}

// list returns the members that the current incarnation lists.
func (p *process) list() (out []listed) {
	for _, r := range p.reports("") {
		switch r.Event {
		case evListed:
			out = r.Members
		case evStopped, evFailed:
			out = nil
		}
	}
	return out
}

// at returns the entry for the address in this member's list. If two incarnations share the
// address, it returns none.
func (p *process) at(address string) (found listed, ok bool) {
	for _, m := range p.list() {
		if m.Address != address {
			continue
		}
		if ok {
			return listed{}, false
		}
		found, ok = m, true
	}
	return found, ok
}

// id returns the id of the current incarnation, as it lists itself.
func (p *process) id() string {
	self, _ := p.at(p.member.Address())
	return self.ID
}

// poll is the interval at which conditions are checked.
const poll = 10 * time.Millisecond
