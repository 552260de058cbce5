//go:build linux

package graintest_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/races"
	"github.com/concord-go/concord/lab/netem"
)

var long = flag.Bool("long", false, "all faults, with 1,000 callers and 10,000 grains")

func TestMain(m *testing.M) {
	if text := os.Getenv(memberEnv); text != "" {
		os.Exit(runMember(text, os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// patience bounds what has no bound of its own; it leaves room for a slow machine.
const patience = time.Minute

// span is the time in which an activation has handled messages.
type span struct{ first, last int64 }

// process is a member as the driver sees it.
type process struct {
	*child.Process
	name  string
	node  int
	up    chan struct{}
	once  sync.Once
	swept chan swept
	calls calls // guarded by driver.mu
}

// driver starts members and causes faults.
type driver struct {
	t    *testing.T
	net  *netem.Network
	spec spec
	n    int // processes ever started
	live []*process
	all  []*process

	mu     sync.Mutex
	grains map[string]map[string]*span // by grain and activation
}

func newDriver(t *testing.T, nodes int, s spec) *driver {
	d := &driver{t: t, net: netem.New(t, nodes), spec: s, grains: map[string]map[string]*span{}}
	d.spec.Dir = t.TempDir()
	for i := range nodes {
		d.spec.Hosts = append(d.spec.Hosts, d.net.Addr(i))
	}
	return d
}

// start starts a process on a node.
func (d *driver) start(node int) *process {
	d.n++
	s := d.spec
	s.Name, s.Host = fmt.Sprint("p", d.n), d.net.Addr(node)
	text, err := json.Marshal(s)
	require.NoError(d.t, err)
	p := &process{name: s.Name, node: node, up: make(chan struct{}), swept: make(chan swept, 10)}
	p.Process = child.StartBy(d.t, func(cmd *exec.Cmd) error { return d.net.Start(node, cmd) },
		[]string{memberEnv + "=" + string(text)}, func(line []byte) { d.hear(p, line) })
	d.live = append(d.live, p)
	d.all = append(d.all, p)
	return p
}

func (d *driver) hear(p *process, line []byte) {
	var r report
	if json.Unmarshal(line, &r) != nil {
		return
	}
	if r.Up {
		p.once.Do(func() { close(p.up) })
	}
	if r.Swept != nil {
		p.swept <- *r.Swept
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Calls != nil {
		p.calls = *r.Calls
	}
	for _, h := range r.Handled {
		spans := d.grains[h.Grain]
		if spans == nil {
			spans = map[string]*span{}
			d.grains[h.Grain] = spans
		}
		l := spans[h.Activation]
		if l == nil {
			l = &span{h.At, h.At}
			spans[h.Activation] = l
		}
		l.first, l.last = min(l.first, h.At), max(l.last, h.At)
	}
}

func (d *driver) ready(p *process) {
	d.t.Helper()
	select {
	case <-p.up:
	case <-p.Gone():
		d.t.Fatalf("%s has ended", p.name)
	case <-time.After(patience):
		d.t.Fatalf("%s is not up", p.name)
	}
}

// sweep returns how long it takes until all grains have answered a member.
func (d *driver) sweep(p *process, what string) time.Duration {
	d.t.Helper()
	require.NoError(d.t, p.Say(`{"Sweep":true}`))
	select {
	case s := <-p.swept:
		d.t.Logf("%-28s all %d grains answer within %v", what, d.spec.Identities,
			s.Worst.Round(10*time.Millisecond))
		return s.Worst
	case <-p.Gone():
		d.t.Fatalf("%s: %s has ended", what, p.name)
	case <-time.After(3 * patience):
		d.t.Fatalf("%s: not all grains answer", what)
	}
	return 0
}

func (d *driver) remove(p *process) {
	d.live = slices.DeleteFunc(d.live, func(o *process) bool { return o == p })
}

func (d *driver) kill(p *process) {
	p.Kill()
	d.remove(p)
}

func (d *driver) leave(p *process) {
	d.t.Helper()
	require.NoError(d.t, p.Say(`{"Stop":true}`))
	require.Zero(d.t, p.ExitCode(), "of %s, which left in order", p.name)
	d.remove(p)
}

// doubles returns how many grains had an activation that handled a message after a later activation
// had handled one.
func (d *driver) doubles() (n, activations int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, spans := range d.grains {
		var sorted []*span
		for _, l := range spans {
			sorted = append(sorted, l)
		}
		activations += len(sorted)
		slices.SortFunc(sorted, func(a, b *span) int { return cmp.Compare(a.first, b.first) })
		for i := 1; i < len(sorted); i++ {
			if sorted[i-1].last >= sorted[i].first {
				n++
				break
			}
		}
	}
	return n, activations
}

func (d *driver) finish() {
	d.t.Helper()
	var sum calls
	d.mu.Lock()
	for _, p := range d.all {
		sum.Done += p.calls.Done
		sum.Failed += p.calls.Failed
	}
	d.mu.Unlock()
	n, activations := d.doubles()
	d.t.Logf("%d calls answered, %d failed; %d activations; %d grains were active twice", sum.Done,
		sum.Failed, activations, n)
	for _, p := range d.all {
		if found := races.Reported(p.Stderr()); len(found) > 0 {
			d.t.Logf("%s: %v", p.name, found)
		}
	}
}

// bound is how long grains may be without an answer after a fault: the leases expire, the members
// agree, and callers give up one call.
const bound = ttl*101/100 + 3*time.Second + 5*time.Second

// short is a crash and a join, in the ordinary run; faults is everything.
func (d *driver) short() {
	third := d.live[2]
	d.kill(third)
	d.within(d.sweep(d.live[0], "after a crash"))
	d.ready(d.start(third.node))
	d.within(d.sweep(d.live[0], "after a join"))
}

func (d *driver) within(took time.Duration) {
	if !d.spec.Disthash && took > bound {
		d.t.Errorf("grains answer after %v, at most %v", took, bound)
	}
}

func (d *driver) faults() {
	d.short()
	last := d.live[len(d.live)-1]
	d.leave(last)
	d.within(d.sweep(d.live[0], "after a leave"))
	d.ready(d.start(last.node))
	d.within(d.sweep(d.live[1], "after a join"))

	// A process that is stopped while it writes a lease keeps the lock of the file store, so no
	// shard may be moving.
	time.Sleep(10 * time.Second)
	frozen := d.live[len(d.live)-1]
	require.NoError(d.t, frozen.Signal(syscall.SIGSTOP))
	d.within(d.sweep(d.live[0], "while a member is frozen"))
	time.Sleep(8 * time.Second)
	require.NoError(d.t, frozen.Signal(syscall.SIGCONT))
	d.within(d.sweep(d.live[0], "after it has woken up"))
	time.Sleep(8 * time.Second)

	cut := d.live[1]
	d.net.Isolate(cut.node)
	d.within(d.sweep(d.live[0], "while a member is cut off"))
	time.Sleep(10 * time.Second)
	d.net.Heal()
	time.Sleep(10 * time.Second)
	d.within(d.sweep(d.live[0], "after the cut"))
	d.within(d.sweep(cut, "at the member that was cut off"))
}

func (d *driver) run(nodes int) {
	for i := range nodes {
		d.start(i)
	}
	for _, p := range d.live {
		d.ready(p)
	}
	d.sweep(d.live[0], "at the start")
	if *long {
		d.faults()
	} else {
		d.short()
	}
	time.Sleep(200 * time.Millisecond) // the last reports
	d.finish()
}

// size returns the specification of a run with a number of members.
func size(nodes int, disthash bool) spec {
	s := spec{Disthash: disthash, Callers: 10, Identities: 300, MinMembers: nodes/2 + 1}
	if *long {
		s.Callers, s.Identities = 1000/nodes, 10_000
	}
	return s
}

func TestGrains_OnRealProcesses(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		if nodes > 3 && !*long {
			continue
		}
		t.Run(fmt.Sprint(nodes, " members"), func(t *testing.T) {
			d := newDriver(t, nodes, size(nodes, false))
			d.run(nodes)
			n, _ := d.doubles()
			require.Zero(t, n, "grains that were active twice")
		})
	}
}

// TestGrains_NotBesideDisthash replaces one member of a cluster on disthash by one with grains, by
// mistake: the member ends with an error that names the others, and activates nothing, so a rolling
// update stops there and no grain is active in both. All members started anew with grains answer.
func TestGrains_NotBesideDisthash(t *testing.T) {
	d := newDriver(t, 3, size(3, true))
	for i := range 3 {
		d.start(i)
	}
	for _, p := range d.live {
		d.ready(p)
	}
	d.sweep(d.live[0], "on disthash")
	d.leave(d.live[2])
	d.spec.Disthash = false
	wrong := d.start(2)
	require.Equal(t, 3, wrong.ExitCode())
	require.Contains(t, wrong.Stderr(), "another identity lookup is used at 10.")
	d.remove(wrong)
	require.Zero(t, d.activations(wrong), "activations at the member with grains")
	d.sweep(d.live[0], "after a member with grains")

	for _, p := range slices.Clone(d.live) {
		d.kill(p)
	}
	for i := range 3 {
		d.start(i)
	}
	for _, p := range d.live {
		d.ready(p)
	}
	d.within(d.sweep(d.live[0], "with grains"))
	d.finish()
}

// activations returns how many activations of a process have handled messages.
func (d *driver) activations(p *process) (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, spans := range d.grains {
		for name := range spans {
			if strings.HasPrefix(name, p.name+"-") {
				n++
			}
		}
	}
	return n
}

// The baseline, in the long form only: its results are for comparison.
func TestDisthash_OnRealProcesses(t *testing.T) {
	if !*long {
		t.Skip("a comparison: run it with -args -long")
	}
	d := newDriver(t, 3, size(3, true))
	d.run(3)
	n, _ := d.doubles()
	require.Positive(t, n, "grains that were active twice")
}
