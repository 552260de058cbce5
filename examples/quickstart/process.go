package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// nodeEnv holds the configuration of a node process.
const nodeEnv = "CONCORD_QUICKSTART_NODE"

const (
	startTimeout     = 20 * time.Second
	operationTimeout = 2 * time.Second // of one attempt; failed attempts are retried
)

// errGone means that the process exited before it answered: the command may have been executed.
var errGone = errors.New("the node is gone")

// process is a node process as seen by the driver.
type process struct {
	cmd    *exec.Cmd
	stderr tail
	ready  chan struct{}
	gone   chan struct{}

	mu struct {
		sync.Mutex
		in    io.WriteCloser
		n     uint64
		calls map[uint64]chan answer
	}
}

// startProcess starts this program as a node.
func startProcess(cfg nodeConfig) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), ready: make(chan struct{}), gone: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), nodeEnv+"="+string(raw))
	p.cmd.Stderr = &p.stderr
	if cfg.Verbose {
		p.cmd.Stderr = os.Stderr
	}
	p.cmd.SysProcAttr = ownGroup() // Ctrl-C is for the driver, which then stops the nodes
	p.mu.calls = map[uint64]chan answer{}
	if p.mu.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out)
	return p, nil
}

// read delivers answers to their waiting calls, until the process exits.
func (p *process) read(out io.Reader) {
	in := json.NewDecoder(bufio.NewReader(out))
	for {
		var a answer
		if err := in.Decode(&a); err != nil {
			if !errors.Is(err, io.EOF) { // not an answer of ours: give up
				_ = p.cmd.Process.Kill()
			}
			break
		}
		if a.N == 0 {
			close(p.ready)
			continue
		}
		p.mu.Lock()
		c := p.mu.calls[a.N]
		delete(p.mu.calls, a.N)
		p.mu.Unlock()
		if c != nil {
			c <- a
		}
	}
	_ = p.cmd.Wait()
	close(p.gone)
}

// call sends a command and waits for its answer.
func (p *process) call(ctx context.Context, c command) (answer, error) {
	got := make(chan answer, 1)
	p.mu.Lock()
	p.mu.n++
	c.N = p.mu.n
	p.mu.calls[c.N] = got
	raw, err := json.Marshal(c)
	if err == nil {
		_, err = p.mu.in.Write(append(raw, '\n'))
	}
	p.mu.Unlock()
	if err != nil {
		return answer{}, errGone
	}
	select {
	case a := <-got:
		if a.Err != "" {
			return a, errors.New(a.Err)
		}
		return a, nil
	case <-p.gone:
		return answer{}, errGone
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// await waits until the node is ready.
func (p *process) await(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-p.gone:
		return fmt.Errorf("%w: %s", errGone, p.stderr.last())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// kill kills the process, like a power cut, and waits for its exit.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.gone
}

// stop lets the node leave gracefully until ctx ends.
func (p *process) stop(ctx context.Context) {
	p.mu.Lock()
	_, _ = p.mu.in.Write([]byte(`{"ask":"stop"}` + "\n"))
	_ = p.mu.in.Close()
	p.mu.Unlock()
	select {
	case <-p.gone:
	case <-ctx.Done():
		p.kill()
	}
}

// tail keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if over := len(t.buf) - 4096; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(p), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.buf))
}

// freePorts returns n unused loopback ports. They lie below the range that the system uses for
// outgoing connections, so that a node that was down for a while finds its port free.
func freePorts(n int) ([]int, error) {
	var ports []int
	for port := 20000 + os.Getpid()%5000; len(ports) < n && port < 32000; port++ {
		l, err := net.Listen("tcp", "0.0.0.0:"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		_ = l.Close()
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("no %d free ports between 20000 and 32000", n)
	}
	return ports, nil
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
