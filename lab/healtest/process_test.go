//go:build linux

package healtest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const memberEnv = "CONCORD_HEAL_MEMBER"

// process is a member process as seen by the driver.
type process struct {
	spec
	cmd  *exec.Cmd
	log  string // file that holds its standard error
	in   io.WriteCloser
	gone chan struct{} // closed when the process has exited
	err  error         // of the process; read after gone
	died time.Duration // when it was killed

	mu sync.Mutex
	heard
}

// heard is what a process has reported so far.
type heard struct {
	last         *status           // nil: nothing yet
	seen         map[string]uint64 // the highest count seen of each process's adds
	acked        []acked
	answers      []answered
	quiet        bool
	dumps        [][]string
	incarnations int
	rounds       []questions
	deposits     []deposited
}

// launch starts a member process by calling start.
func launch(s spec, log string, start func(*exec.Cmd) error) (*process, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	stderr, err := os.Create(filepath.Clean(log))
	if err != nil {
		return nil, err
	}
	defer stderr.Close()
	p := &process{spec: s, log: log, cmd: exec.Command(exe), gone: make(chan struct{})}
	p.seen = map[string]uint64{}
	// Proto.Actor has data races of its own, so a race report alone is not a failure: see package
	// races.
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(text), "GORACE=exitcode=0")
	p.cmd.Stderr = stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(p.cmd); err != nil {
		return nil, err
	}
	go p.read(out)
	return p, nil
}

// read reads the reports of the process until it exits.
func (p *process) read(out io.Reader) {
	defer close(p.gone)
	in := json.NewDecoder(bufio.NewReader(out))
	for {
		var r report
		if err := in.Decode(&r); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				_ = p.cmd.Process.Kill() // not one of our reports
			}
			break
		}
		p.mu.Lock()
		p.take(r)
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
}

func (h *heard) take(r report) {
	switch {
	case r.Status != nil:
		h.last, h.incarnations = r.Status, max(h.incarnations, r.Status.Incarnation)
		for name, n := range r.Status.By {
			h.seen[name] = max(h.seen[name], n)
		}
	case r.Acked != nil:
		h.acked = append(h.acked, *r.Acked)
	case r.Round != nil:
		h.rounds = append(h.rounds, *r.Round)
	case r.Answered != nil:
		h.answers = append(h.answers, *r.Answered)
	case r.Quiet:
		h.quiet = true
	case r.Deposited != nil:
		h.deposits = append(h.deposits, *r.Deposited)
		h.acked = append(h.acked, acked{r.Deposited.At, r.Deposited.String()})
	case r.Dump != nil:
		h.dumps = append(h.dumps, r.Dump)
	}
}

// now returns what the process has reported so far.
func (p *process) now() heard {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.heard
	h.seen = maps.Clone(h.seen)
	return h
}

// command sends a command to the process.
func (p *process) command(do string) {
	raw, err := json.Marshal(command{do})
	if err != nil {
		panic(err)
	}
	_, _ = p.in.Write(append(raw, '\n')) // an exited process is detected elsewhere
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// ended reports whether the process has exited.
func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// kill kills the process at once.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.gone
}

// terminate sends SIGTERM and returns how long the process took to exit. It returns an error if
// that took longer than patience or the exit status was not 0.
func (p *process) terminate() (time.Duration, error) {
	began := time.Now()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.gone:
	case <-time.After(patience()):
		return patience(), fmt.Errorf("%s has not exited %v after SIGTERM", p.Name, patience())
	}
	if p.err != nil {
		return time.Since(began), fmt.Errorf("%s after SIGTERM: %w", p.Name, p.err)
	}
	return time.Since(began), nil
}
