package clustertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/internal/races"
)

// process is a member process, seen from the test.
type process struct {
	e      *env
	member Member
	cmd    *exec.Cmd
	in     io.WriteCloser
	stderr bytes.Buffer // to be read when the process has ended
	ended  chan struct{}

	mu    sync.Mutex
	lines []report
}

// launch starts a process, which is no member yet.
func (e *env) launch(m Member) *process {
	e.Helper()
	e.config.Prepare(e, m)
	arg, err := json.Marshal(order{m, min(2*e.config.ListedWithin+5*time.Second, limit/2)})
	e.must(err)
	p := &process{e: e, member: m, cmd: exec.Command(os.Args[0]), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(arg), "GORACE=exitcode=0")
	p.cmd.Stderr = &p.stderr
	p.in, err = p.cmd.StdinPipe()
	e.must(err)
	out, err := p.cmd.StdoutPipe()
	e.must(err)
	e.must(p.cmd.Start())
	go p.read(out)
	e.Cleanup(func() {
		p.end()
		p.races()
		if e.Failed() {
			e.Logf("member %d at %s:\n%s\nreports: %+v", m.Index, m.Address(), tail(p.stderr.String()), p.reports(""))
		}
	})
	return p
}

// read collects reports until the process has ended.
func (p *process) read(out io.Reader) {
	defer close(p.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if text, ok := strings.CutPrefix(line, marker); ok {
			var r report
			if json.Unmarshal([]byte(text), &r) == nil {
				p.mu.Lock()
				p.lines = append(p.lines, r)
				p.mu.Unlock()
			}
		}
		if err != nil {
			return
		}
	}
}

// end ends the process, whatever it does.
func (p *process) end() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait()
}

// remoting are functions that race with each other whatever a provider does: each start sets the logger of
// all of gRPC, and a stop does not wait for connections that end.
var remoting = []string{"grpclog.SetLoggerV2", "remote.(*endpointManager).stop()"}

// races fails the test if the race detector has found some. The process must have ended.
func (p *process) races() {
	if p.e.config.Except[raceRule] != "" {
		return
	}
	for _, r := range races.Reported(p.stderr.String()) {
		if !slices.ContainsFunc(remoting, func(f string) bool { return strings.Contains(r, f) }) {
			p.e.Errorf("%s: data race in member %d:\n%s", raceRule, p.member.Index, r)
		}
	}
}

// kill is kill -9.
func (p *process) kill() {
	p.end()
	p.e.config.Killed(p.e, p.member)
}

func (p *process) send(command string) {
	p.e.Helper()
	_, err := io.WriteString(p.in, command+"\n")
	p.e.must(err)
}

// answer waits for the report of one of these events that comes after so many.
func (p *process) answer(after int, events ...string) report {
	p.e.Helper()
	p.e.eventually(limit, func() bool { return len(p.answers(events)) > after || p.gone() },
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

func (p *process) gone() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
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

func tail(s string) string {
	const most = 8000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}

// poll is how often a condition is looked at.
const poll = 10 * time.Millisecond
