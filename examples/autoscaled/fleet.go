package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"
)

// most is the maximum number of members in the example.
const most = 7

// fleet plays the autoscaler: it starts and stops processes.
type fleet struct {
	leases  string
	stderr  io.Writer
	ports   []int
	started int
	running []*process // oldest first
	ended   []*process
}

// process is one member.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	done chan struct{} // closed when its output has ended
	mu   sync.Mutex
	last report
}

func newFleet(dir string, stderr io.Writer) (*fleet, error) {
	f := &fleet{leases: dir, stderr: stderr}
	for range most {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // all ports are reserved before the first one is released
		f.ports = append(f.ports, l.Addr().(*net.TCPAddr).Port)
	}
	return f, nil
}

// grow starts n more members.
func (f *fleet) grow(ctx context.Context, n int) error {
	for range n {
		if err := f.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *fleet) start(ctx context.Context) error {
	cfg := memberConfig{Leases: f.leases, Port: f.ports[f.started]}
	for _, port := range f.ports {
		cfg.Hosts = append(cfg.Hosts, fmt.Sprint("127.0.0.1:", port))
	}
	f.started++
	raw, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{cmd: exec.CommandContext(ctx, self), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), memberEnv+"="+string(raw))
	p.cmd.Stderr = f.stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	go p.read(out)
	f.running = append(f.running, p)
	return nil
}

func (p *process) read(out io.Reader) {
	defer close(p.done)
	for in := json.NewDecoder(out); ; {
		var r report
		if in.Decode(&r) != nil {
			return
		}
		p.mu.Lock()
		p.last = r
		p.mu.Unlock()
	}
}

func (p *process) report() report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// take removes and returns the n oldest running processes.
func (f *fleet) take(n int) []*process {
	taken := f.running[:n]
	f.running = f.running[n:]
	f.ended = append(f.ended, taken...)
	return taken
}

// kill sends SIGKILL to the n oldest members.
func (f *fleet) kill(n int) {
	for _, p := range f.take(n) {
		_ = p.cmd.Process.Kill()
		<-p.done
		_ = p.cmd.Wait()
	}
}

// shrink stops the n oldest members gracefully, one after the other.
func (f *fleet) shrink(n int) error {
	for _, p := range f.take(n) {
		_ = p.in.Close()
		<-p.done
		if err := p.cmd.Wait(); err != nil {
			return fmt.Errorf("member %d: %w", len(f.ended), err)
		}
	}
	return nil
}

// replace starts n members, and stops all others once the new ones are counted.
func (f *fleet) replace(ctx context.Context, n int) error {
	old := len(f.running)
	if err := f.grow(ctx, n); err != nil {
		return err
	}
	if err := f.agree(ctx, old+n); err != nil {
		return err
	}
	return f.shrink(old)
}

// agree waits until every member counts n members and has written twice since.
func (f *fleet) agree(ctx context.Context, n int) error {
	return f.await(ctx, fmt.Sprintf("%d members are counted, and write", n),
		func() func(i int, r report) bool {
			since := make([]uint64, len(f.running))
			return func(i int, r report) bool {
				if r.Counted != n {
					return false
				}
				if since[i] == 0 {
					since[i] = r.Acknowledged + 2
				}
				return r.Acknowledged >= since[i]
			}
		}())
}

// complete waits until every member reads as many writes as have been acknowledged so far.
func (f *fleet) complete(ctx context.Context) error {
	var sum uint64
	for _, p := range append(append([]*process{}, f.ended...), f.running...) {
		sum += p.report().Acknowledged
	}
	return f.await(ctx, fmt.Sprintf("%d writes are read", sum), func(_ int, r report) bool {
		return r.Sum >= sum
	})
}

// await waits until done returns true for the last report of each running member.
func (f *fleet) await(ctx context.Context, what string, done func(i int, r report) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		all := true
		for i, p := range f.running {
			all = done(i, p.report()) && all
		}
		if all {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("waited until %s: %w", what, context.Cause(ctx))
		}
	}
}
