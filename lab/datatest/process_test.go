package datatest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/lab/internal/listing"
)

var errGone = errors.New("the process is gone")

// process is a member as seen by the driver.
type process struct {
	*child.Process
	here  chan listing.Member // receives one value, when the process listens
	ready chan error          // receives one value

	mu struct {
		sync.Mutex
		n     uint64
		calls map[uint64]chan answer
	}
}

// launch starts a process with start.
func launch(t *testing.T, s spec, start func(*exec.Cmd) error) *process {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{here: make(chan listing.Member, 1), ready: make(chan error, 1)}
	p.mu.calls = map[uint64]chan answer{}
	p.Process = child.StartBy(t, start, []string{memberEnv + "=" + string(text)}, p.hear)
	return p
}

// hear passes on a line of the process.
func (p *process) hear(line []byte) {
	var a answer
	switch err := json.Unmarshal(line, &a); {
	case err != nil:
		p.ready <- fmt.Errorf("%w: %q", err, line)
	case a.N != 0:
		p.mu.Lock()
		c := p.mu.calls[a.N]
		delete(p.mu.calls, a.N)
		p.mu.Unlock()
		c <- a
	case a.Here != nil:
		p.here <- *a.Here
	case a.Ready:
		p.ready <- nil
	default:
		p.ready <- errors.New(a.Err)
	}
}

// call sends a command and waits for its answer, forever if the process neither answers nor ends:
// each command has its own time limit.
func (p *process) call(do command) (answer, error) {
	got := make(chan answer, 1)
	p.mu.Lock()
	p.mu.n++
	do.N = p.mu.n
	p.mu.calls[do.N] = got
	raw, err := json.Marshal(do)
	if err == nil {
		err = p.Say(string(raw))
	}
	p.mu.Unlock()
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errGone, err)
	}
	select {
	case a := <-got:
		return a, nil
	case <-p.Gone():
		return answer{}, errGone
	}
}

// leave stops the process in order.
func (p *process) leave() error {
	p.Hangup()
	select {
	case <-p.Gone():
	case <-time.After(2 * patience):
		return fmt.Errorf("has not ended %v after it was told to", 2*patience)
	}
	if code := p.ExitCode(); code != 0 {
		return fmt.Errorf("exit status %d", code)
	}
	return nil
}
