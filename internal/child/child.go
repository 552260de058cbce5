// Package child runs a test's own program in another process, which ends with the test.
package child

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"testing"
)

// Process is a child process. TestMain recognises it by its environment variable.
type Process struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	gone chan struct{}

	stderr Screen
}

// Start starts a process with additional environment variables. hears is called for each line of
// its standard output, including the line ending, one call at a time. The process is killed at the
// end of the test. If the test has failed, the standard error of the process is logged. A data race
// does not change the exit status of the process: see package races.
func Start(t testing.TB, env []string, hears func(line []byte)) *Process {
	t.Helper()
	return StartBy(t, (*exec.Cmd).Start, env, hears)
}

// StartBy is like Start, and starts the process with the given function.
func StartBy(t testing.TB, start func(*exec.Cmd) error, env []string,
	hears func(line []byte)) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(os.Args[0]), gone: make(chan struct{})}
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
	if err := start(p.cmd); err != nil {
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
			t.Logf("process %d, %v, has written:\n%s", p.cmd.Process.Pid, p.cmd.ProcessState,
				p.Stderr())
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

// Hangup closes the standard input of the process.
func (p *Process) Hangup() { _ = p.in.Close() }

// Kill sends SIGKILL and returns when the process has ended. It may be called again.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// Gone returns a channel that is closed when the process has ended and hears has returned for its
// last line.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Ended reports whether the channel of Gone is closed.
func (p *Process) Ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// ExitCode waits for the process to end and returns its exit code, or -1 if it was killed.
func (p *Process) ExitCode() int {
	<-p.gone
	return p.cmd.ProcessState.ExitCode()
}

// Stderr returns the standard error of the process so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// With returns the lines of the standard error so far that contain text.
func (p *Process) With(text string) []string { return p.stderr.With(text) }
