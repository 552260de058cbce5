//go:build stores

package etcd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/fence"
)

// The scenarios run real processes on etcd and on files. No test sleeps for a fixed time: each
// waits for an event.

// process is a worker that the test commands.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func (p *process) send(command string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.t.Fatalf("%s: %v", command, err)
	}
}

// hear waits for the next answer.
func (p *process) hear() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the process has ended: %v", p.out.Err())
	}
	return p.out.Text()
}

func (p *process) ask(command string) string {
	p.t.Helper()
	p.send(command)
	return p.hear()
}

// granted parses an answer.
func (p *process) granted(answer string) (token, at int64) {
	p.t.Helper()
	if _, err := fmt.Sscanf(answer, "granted %d %d", &token, &at); err != nil {
		p.t.Fatalf("got %q, want a grant", answer)
	}
	return token, at
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(s))
}

// scene is the setting of the processes: a store, and a target with a fence.
type scene struct {
	t      *testing.T
	store  string
	prefix string
	target string
	ttl    string // of the workers; empty: the default
}

// eachStore runs play on etcd and on files.
func eachStore(t *testing.T, play func(s *scene)) {
	t.Run("etcd", func(t *testing.T) { play(newScene(t, "etcd "+server(t)[0])) })
	t.Run("file", func(t *testing.T) { play(newScene(t, "file "+t.TempDir())) })
}

func newScene(t *testing.T, store string) *scene {
	var guard fence.Guard
	done := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	target := httptest.NewServer(guard.Handler(func(*http.Request) string {
		return "account"
	}, done))
	t.Cleanup(target.Close)
	return &scene{t: t, store: store, prefix: prefix(t), target: target.URL}
}

func (s *scene) start() *process { return s.startOn(s.store) }

func (s *scene) startOn(store string) *process {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CONCORD_WORKER="+store, "CONCORD_PREFIX="+s.prefix,
		"CONCORD_TARGET="+s.target, "CONCORD_TTL="+s.ttl)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(s.t, err)
	out, err := cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, cmd.Start())
	p := &process{s.t, cmd, in, bufio.NewScanner(out)}
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // also if stopped
		_ = cmd.Wait()
	})
	if got := p.hear(); got != "ready" {
		s.t.Fatalf("got %q", got)
	}
	return p
}

// TestScenario_OneWinnerOfManyProcesses has a TTL that outlives every process.
func TestScenario_OneWinnerOfManyProcesses(t *testing.T) {
	eachStore(t, func(s *scene) {
		s.ttl = "10m"
		var all []*process
		for range 5 {
			all = append(all, s.start())
		}
		for _, p := range all {
			p.send("try")
		}
		won := 0
		for _, p := range all {
			answer := p.hear()
			for answer == "unknown" { // a busy machine answers too late
				answer = p.ask("try")
			}
			if answer != "held" {
				p.granted(answer)
				won++
			}
		}
		if won != 1 {
			s.t.Errorf("%d winners", won)
		}
	})
}

// TestScenario_AKilledHolderIsReplaced: after SIGKILL only the store knows anything about a
// process.
func TestScenario_AKilledHolderIsReplaced(t *testing.T) {
	eachStore(t, func(s *scene) {
		a, b := s.start(), s.start()
		first, _ := a.granted(a.ask("acquire"))
		b.send("acquire")
		a.signal(syscall.SIGKILL)
		second, _ := b.granted(b.hear())
		if second <= first {
			s.t.Errorf("token %d after %d", second, first)
		}
	})
}

// TestScenario_AStoppedHolderIsFenced: if a process is stopped between its check and its effect for
// longer than the TTL, its effect is rejected, and it learns that it lost the lease.
func TestScenario_AStoppedHolderIsFenced(t *testing.T) {
	eachStore(t, func(s *scene) {
		a, b := s.start(), s.start()
		first, _ := a.granted(a.ask("acquire"))
		for a.ask("effect") != "checked" { // lost meanwhile: the machine is busy
			first, _ = a.granted(a.ask("acquire"))
		}
		a.signal(syscall.SIGSTOP)
		second, _ := b.granted(b.ask("acquire"))
		if second <= first {
			s.t.Errorf("token %d after %d", second, first)
		}
		for b.ask("effect") != "checked" {
			b.granted(b.ask("acquire"))
		}
		if got := b.ask("go on"); got != "200 OK" {
			s.t.Errorf("the holder's effect: %s", got)
		}
		a.signal(syscall.SIGCONT)
		if got := a.ask("go on"); got != "412 Precondition Failed" {
			s.t.Errorf("the late effect: %s", got)
		}
		if got := a.ask("check"); got != "lost" {
			s.t.Errorf("after waking: %s", got)
		}
	})
}

// TestScenario_Partition cuts the holder's process off from etcd, while it and the others try to
// renew. It stops before another process gets the lease, does not get it back while that process
// holds it, and can acquire it afterwards. On files there is no network to cut.
func TestScenario_Partition(t *testing.T) {
	s := newScene(t, "etcd "+server(t)[0])
	p := newProxy(t, server(t)[0])
	a, b := s.startOn("etcd "+p.address), s.start()
	first, _ := a.granted(a.ask("acquire"))
	b.send("acquire")
	p.cut(true)
	var lastHeld int64 // start of the last check that succeeded
	for {
		answer := a.ask("check")
		if answer == "lost" {
			break
		}
		time.Sleep(5 * time.Millisecond)
		_, err := fmt.Sscanf(answer, "holds %d", &lastHeld)
		must(t, err)
	}
	second, began := b.granted(b.hear())
	if second <= first {
		t.Errorf("token %d after %d", second, first)
	}
	if lastHeld >= began {
		t.Errorf("held at %d on one side, and from %d on the other", lastHeld, began)
	}
	if got := a.ask("try"); got != "unknown" {
		t.Errorf("from the cut side: %s", got)
	}
	p.cut(false)
	a.send("acquire")
	b.signal(syscall.SIGKILL)
	if third, _ := a.granted(a.hear()); third <= second {
		t.Errorf("token %d after %d", third, second)
	}
}

// proxy forwards connections to a server, unless it is cut.
type proxy struct {
	address string
	mu      sync.Mutex
	isCut   bool
	conns   []net.Conn
}

func newProxy(t *testing.T, to string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{address: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return // closed
			}
			far, err := net.DialTimeout("tcp", to, 10*time.Second)
			if err != nil || !p.add(near, far) {
				_ = near.Close()
				continue
			}
			wg.Go(func() { forward(far, near) })
			wg.Go(func() { forward(near, far) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.cut(true)
		wg.Wait()
	})
	return p
}

func (p *proxy) add(near, far net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isCut {
		_ = far.Close()
		return false
	}
	p.conns = append(p.conns, near, far)
	return true
}

// cut closes all connections, and rejects new ones until it is mended.
func (p *proxy) cut(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = on
	if on {
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.conns = nil
	}
}

func forward(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	_, _ = io.Copy(to, from)
}
