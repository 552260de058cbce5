//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	clusterSize  = 3
	startTimeout = 2 * time.Minute
	awaitTimeout = 30 * time.Second
	runTimeout   = 4 * time.Minute // of a command, beyond the length of the measurement
	endTimeout   = 5 * time.Second
)

// cluster is three processes of one system.
type cluster struct {
	of      string
	space   string // network namespace; empty if it shares the loopback interface
	members []*process
}

// process is a member. Its commands and answers are described at type member.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string // answers; closed at its end
	errors tail
	hosts  string // since when it hosts the singleton, if it has said so
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - 4000; extra > 0 {
		t.text = bytes.Clone(t.text[extra:])
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// startCluster starts three processes of a system and waits until they are one cluster. pekko is
// the directory of the compiled driver of Pekko; profiles is one for CPU profiles of the others, or
// empty. more are further arguments of the members.
func startCluster(of, space, pekko, profiles string, more ...string) (*cluster, error) {
	c := &cluster{of: of, space: space}
	ports, err := freePorts(2 * clusterSize)
	if err != nil {
		return nil, err
	}
	for i := range clusterSize {
		args, err := memberCommand(of, i, ports, pekko, profiles)
		if err == nil {
			args = append(args, more...)
			if space != "" {
				args = append([]string{"ip", "netns", "exec", space}, args...)
			}
			var p *process
			if p, err = startProcess(args); err == nil {
				c.members = append(c.members, p)
			}
		}
		if err != nil {
			c.close()
			return nil, err
		}
	}
	for i, p := range c.members {
		line, err := p.answer(startTimeout)
		if n, at, ok := strings.Cut(line, "at="); ok && n == "hosts " { // a host may begin before it is ready
			p.hosts = at
			line, err = p.answer(startTimeout)
		}
		if err != nil || line != "ready" {
			c.close()
			return nil, fmt.Errorf("member %d of %s: %w: %q: %v", i, of, err, line,
				p.errors.String())
		}
	}
	return c, nil
}

func memberCommand(of string, index int, ports []string, pekko, profiles string) ([]string, error) {
	if of != "pekko" {
		self, err := os.Executable()
		args := []string{self, "member", "-of", of, "-index", strconv.Itoa(index), "-ports",
			strings.Join(ports, ",")}
		if profiles != "" {
			args = append(args, "-profile",
				filepath.Join(profiles, fmt.Sprintf("%s-%d.pprof", of, index)))
		}
		return args, err
	}
	path, err := os.ReadFile(filepath.Join(pekko, "classpath"))
	if err != nil {
		return nil, fmt.Errorf("the driver of Pekko is not built, see make bench-peers: %w", err)
	}
	args := []string{"java", "-cp", filepath.Join(pekko, "classes") + ":" +
		strings.TrimSpace(string(path)), "bench.Member", strconv.Itoa(index)}
	return append(args, ports[:clusterSize]...), nil
}

// freePorts returns ports on which nothing listens. They are outside the range that the kernel
// assigns to connections.
func freePorts(n int) (ports []string, err error) {
	const least, most = 22_000, 32_000
	for tries := 0; len(ports) < n; tries++ {
		if tries > 100*n {
			return nil, fmt.Errorf("%d of %d free ports after %d tries", len(ports), n, tries)
		}
		port := strconv.Itoa(least + rand.IntN(most-least))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		defer l.Close()
		ports = append(ports, port)
	}
	return ports, nil
}

func startProcess(args []string) (*process, error) {
	p := &process{cmd: exec.Command(args[0], args[1:]...), lines: make(chan string, 1)}
	p.cmd.Stderr = &p.errors
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			if line, ok := strings.CutPrefix(in.Text(), "@ "); ok {
				p.lines <- line
			} else {
				_, _ = p.errors.Write(append(in.Bytes(), '\n'))
			}
		}
	}()
	return p, nil
}

var errEnded = errors.New("the process has ended")

// answer returns the next answer of a process.
func (p *process) answer(timeout time.Duration) (string, error) {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return "", errEnded
		}
		return line, nil
	case <-time.After(timeout):
		return "", fmt.Errorf("no answer within %v", timeout)
	}
}

// ask sends a command and returns the numbers of its answer by name.
func (p *process) ask(command string, timeout time.Duration) (map[string]int64, error) {
	fail := func(err error) error {
		return fmt.Errorf("%q: %w\n%v", command, err, p.errors.String())
	}
	if _, err := io.WriteString(p.in, command+"\n"); err != nil {
		return nil, fail(err)
	}
	line, err := p.answer(timeout)
	if err != nil {
		return nil, fail(err)
	}
	words := strings.Fields(line)
	if len(words) == 0 || words[0] == "failed" {
		return nil, fail(errors.New(line))
	}
	numbers := map[string]int64{}
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		if numbers[name], err = strconv.ParseInt(value, 10, 64); err != nil {
			return nil, fail(err)
		}
	}
	return numbers, nil
}

// close ends the processes. They end with their input, and are killed if they do not.
func (c *cluster) close() {
	for _, p := range c.members {
		_ = p.in.Close()
	}
	for _, p := range c.members {
		kill := time.AfterFunc(endTimeout, func() { _ = p.cmd.Process.Kill() })
		for range p.lines { // until its output is closed
			continue
		}
		_ = p.cmd.Wait()
		kill.Stop()
	}
	c.members = nil
}

func (c *cluster) pids() (pids []int) {
	for _, p := range c.members {
		pids = append(pids, p.cmd.Process.Pid)
	}
	return pids
}

// run carries out a work at the first member: n requests, or requests for d if n is 0. It returns
// when the others have all updates.
func (c *cluster) run(w work, n int, d time.Duration) (figure, error) {
	before, err := look(c.pids())
	if err != nil {
		return nil, err
	}
	done, err := c.members[0].ask(fmt.Sprintf("run n=%d ms=%d %s", n, d.Milliseconds(),
		w.arguments()), d+runTimeout)
	if err != nil {
		return nil, err
	}
	there := done["start"] + done["ns"]
	if w.awaited() {
		if there, err = c.await(w, done["total"]); err != nil {
			return nil, err
		}
	}
	after, err := look(c.pids())
	if err != nil {
		return nil, err
	}
	ops := float64(done["n"])
	if ops == 0 {
		return nil, fmt.Errorf("%s: no request of %v was answered within %v", c.of, w, d)
	}
	took := float64(done["ns"])
	f := figure{
		"cpu-ns/op": float64((after.own - before.own).Nanoseconds()) / ops,
		"sent-B/op": float64(after.sent-before.sent) / ops,
		"load":      after.load,
		"others-cpus": max(0, float64(after.busy-before.busy-after.own+before.own)/float64(
			after.at.Sub(before.at))),
	}
	if c.space != "" {
		f["net-B/op"] = float64(after.net-before.net) / ops
	}
	if w.op == spread {
		f["local-ops/s"] = ops / took * 1e9
		f["later-ms"] = max(0, float64(there-done["start"])-took) / 1e6
		took = float64(there - done["start"])
	}
	if done["p50"] > 0 {
		f["p50-ns"] = float64(done["p50"])
	}
	if done["peak"] > 0 {
		f["peak-heap-B"] = float64(done["peak"])
	}
	f["ops/s"] = ops / took * 1e9
	return f, nil
}

// await waits until the other members have total updates of the keys of w, and returns the Unix
// time in nanoseconds at which the last one had them.
func (c *cluster) await(w work, total int64) (last int64, err error) {
	command := fmt.Sprintf("await total=%d %s", total, w.arguments())
	var all sync.WaitGroup
	at, errs := make([]int64, clusterSize), make([]error, clusterSize)
	for i := 1; i < clusterSize; i++ {
		all.Go(func() {
			answer, err := c.members[i].ask(command, 2*awaitTimeout)
			at[i], errs[i] = answer["at"], err
		})
	}
	all.Wait()
	return max(at[1], at[2]), errors.Join(errs...)
}

// prepare makes the entries of all works. After it the others have them.
func (c *cluster) prepare(works []work) error {
	made := map[string]bool{}
	for _, w := range works {
		if made[w.group()] {
			continue
		}
		made[w.group()] = true
		w.op, w.callers = update, 16
		if _, err := c.run(w, w.keys*max(1, w.elems), 0); err != nil {
			return err
		}
	}
	return nil
}

// heap makes the entries of w, which must be new, and measures the heap of each at the first member
// and at another one, some time later: logs of changes may then have been cut.
func (c *cluster) heap(w work, later time.Duration) (figure, error) {
	var before, after [2]int64
	look := func(at *[2]int64) error {
		for i := range at {
			answer, err := c.members[i].ask("heap", awaitTimeout)
			if err != nil {
				return err
			}
			at[i] = answer["bytes"]
		}
		return nil
	}
	if err := look(&before); err != nil {
		return nil, err
	}
	if _, err := c.run(w, w.keys, 0); err != nil {
		return nil, err
	}
	time.Sleep(later)
	if err := look(&after); err != nil {
		return nil, err
	}
	return figure{
		"heap-B/key":        float64(after[0]-before[0]) / float64(w.keys),
		"reader-heap-B/key": float64(after[1]-before[1]) / float64(w.keys),
	}, nil
}
