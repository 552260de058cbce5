//go:build linux

package healtest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
)

const memberEnv = "CONCORD_HEAL_MEMBER"

// process is a member process as seen by the driver.
type process struct {
	*child.Process
	spec
	log  string        // file that holds its standard error
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
func launch(t *testing.T, s spec, log string, start func(*exec.Cmd) error) *process {
	t.Helper()
	text, err := json.Marshal(s)
	require.NoError(t, err)
	stderr, err := os.Create(filepath.Clean(log))
	require.NoError(t, err)
	defer stderr.Close()
	p := &process{spec: s, log: log}
	p.seen = map[string]uint64{}
	p.Process = child.StartBy(t, func(cmd *exec.Cmd) error {
		cmd.Stderr = stderr
		return start(cmd)
	}, []string{memberEnv + "=" + string(text)}, p.read)
	return p
}

// read reads a report of the process.
func (p *process) read(line []byte) {
	var r report
	if err := json.Unmarshal(line, &r); err != nil {
		p.signal(syscall.SIGKILL) // not one of our reports
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(r)
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
	_ = p.Say(string(raw)) // an exited process is detected elsewhere
}

func (p *process) signal(s syscall.Signal) { _ = p.Signal(s) }

// terminate sends SIGTERM and returns how long the process took to exit. It returns an error if
// that took longer than patience or the exit status was not 0.
func (p *process) terminate() (time.Duration, error) {
	began := time.Now()
	p.signal(syscall.SIGTERM)
	select {
	case <-p.Gone():
	case <-time.After(patience()):
		return patience(), fmt.Errorf("%s has not exited %v after SIGTERM", p.Name, patience())
	}
	if code := p.ExitCode(); code != 0 {
		return time.Since(began), fmt.Errorf("%s after SIGTERM: exit status %d", p.Name, code)
	}
	return time.Since(began), nil
}
