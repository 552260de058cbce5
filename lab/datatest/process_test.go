package datatest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/distributeddata"
)

var errGone = errors.New("the process is gone")

func isQuorum(err error) bool { return errors.Is(err, distributeddata.ErrQuorum) }

// process is a member as seen by the driver.
type process struct {
	cmd    *exec.Cmd
	stderr strings.Builder // to be read when the process is gone
	here   chan listed     // receives one value, when the process listens
	ready  chan error      // receives one value
	gone   chan struct{}   // closed
	err    error           // result of the process; read after gone

	mu struct {
		sync.Mutex
		in    io.WriteCloser
		n     uint64
		calls map[uint64]chan answer
	}
}

// launch starts a process with start.
func launch(s spec, start func(*exec.Cmd) error) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(exe), here: make(chan listed, 1), ready: make(chan error, 1),
		gone: make(chan struct{})}
	// Proto.Actor has data races of its own, so a report is not a failure yet: see races.
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(text), "GORACE=exitcode=0")
	p.cmd.Stderr = &p.stderr
	p.mu.calls = map[uint64]chan answer{}
	if p.mu.in, err = p.cmd.StdinPipe(); err != nil {
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

// read passes on the lines of the process, until it ends.
func (p *process) read(out io.Reader) {
	defer close(p.gone)
	in := json.NewDecoder(bufio.NewReader(out))
	for {
		var a answer
		if err := in.Decode(&a); err != nil {
			if !errors.Is(err, io.EOF) {
				_ = p.cmd.Process.Kill() // a line cut off by a kill, or not a line of ours
			}
			break
		}
		switch {
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
	p.err = p.cmd.Wait()
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
		_, err = p.mu.in.Write(append(raw, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errGone, err)
	}
	select {
	case a := <-got:
		return a, nil
	case <-p.gone:
		return answer{}, errGone
	}
}

// leave stops the process in order.
func (p *process) leave() error {
	p.mu.Lock()
	err := p.mu.in.Close()
	p.mu.Unlock()
	select {
	case <-p.gone:
		return errors.Join(err, p.err)
	case <-time.After(2 * patience):
		return fmt.Errorf("has not ended %v after it was told to", 2*patience)
	}
}

// kill ends the process at once with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}
