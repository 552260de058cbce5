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

// process is a member process, seen from the test.
type process struct {
	*child.Process
	e      *env
	member Member

	mu    sync.Mutex
	lines []report
}

// launch starts a process, which is no member yet.
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

// races fails the test if the race detector has found some. The process must have ended.
func (p *process) races() {
	if p.e.config.Except[raceRule] != "" {
		return
	}
	for _, r := range races.Reported(p.Stderr()) {
		p.e.Errorf("%s: data race in member %d:\n%s", raceRule, p.member.Index, r)
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.Kill()
	p.e.config.Killed(p.e, p.member)
}

func (p *process) send(command string) {
	p.e.Helper()
	p.e.must(p.Say(command))
}

// answer waits for the report of one of these events that comes after so many.
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

// tell sends a command, which is answered by one of the events, and returns the answer.
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

// start begins a life, and fails the test if there is none.
func (p *process) start() *process {
	p.e.Helper()
	p.isStarted(p.tell(cmdStart, evStarted, evFailed))
	return p
}

func (p *process) isStarted(r report) {
	p.e.Helper()
	if r.Event != evStarted {
		p.e.Fatalf("%s: member %d at %s does not start: %s", p.e.rule, p.member.Index, p.member.Address(), r.Text)
	}
}

// stop ends a life in order.
func (p *process) stop() {
	p.e.Helper()
	if r := p.tell(cmdStop, evStopped); r.Text != "" {
		p.e.Fatalf("%s: member %d does not stop in order: %s", p.e.rule, p.member.Index, r.Text)
	}
}

// reports returns what was said so far, of one kind or ("") all.
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

// list returns what the present life lists.
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

// at returns how this member lists the address. Two lives at one address are none.
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

// id is that of the present life, as it lists itself.
func (p *process) id() string {
	self, _ := p.at(p.member.Address())
	return self.ID
}

// poll is how often a condition is looked at.
const poll = 10 * time.Millisecond
