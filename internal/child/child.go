// Package child starts a test's own program again, as another process, which ends with the test.
package child

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Process is one. The first process that finds its variable in the environment is to be told in TestMain.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	gone chan struct{}

	stderr Screen
}

// Start starts a process with more variables in its environment. hears gets each line of its standard output, one
// after the other, and with its end. The process is killed with the test, and what it has written to its standard error is logged if the
// test has failed. A data race does not change its exit status: see package races.
func Start(t testing.TB, env []string, hears func(line []byte)) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(os.Args[0]), gone: make(chan struct{})} //nolint:gosec // ourselves
	p.cmd.Env = append(append(os.Environ(), "GORACE=exitcode=0"), env...)
	p.cmd.Stderr = &p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.gone)
		in := bufio.NewReader(out)
		for err := error(nil); err == nil; {
			var line []byte
			if line, err = in.ReadBytes('\n'); err == nil {
				hears(line)
			}
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("process %d, %v, has written:\n%s", p.cmd.Process.Pid, p.cmd.ProcessState, p.Stderr())
		}
	})
	return p
}

// Say writes a line to the process. It fails if the process has ended.
func (p *Process) Say(line string) error {
	_, err := io.WriteString(p.in, line+"\n")
	return err
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Hangup ends the input of the process.
func (p *Process) Hangup() { _ = p.in.Close() }

// Kill is kill -9, and returns when the process has ended. It may be called again.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// Gone is closed when the process has ended, and hears has got its last line.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Ended reports whether Gone is closed.
func (p *Process) Ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// ExitCode waits for the end of the process. It is -1 for one that was killed.
func (p *Process) ExitCode() int {
	<-p.gone
	return p.cmd.ProcessState.ExitCode()
}

// Stderr is what the process has written to its standard error so far.
func (p *Process) Stderr() string { return p.stderr.String() }
