//go:build linux

package healtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/races"
	"github.com/concord-go/concord/lab/netem"
	"github.com/concord-go/concord/testkit/pki"
)

// patience bounds the wait for every expected event. With "make heal", a longer wait is a failure.
// In the sample, which runs along with other tests, the machine may be too busy for the goals, and
// a cluster that is split for that reason heals by itself.
func patience() time.Duration {
	if *runs == 0 {
		return 3 * time.Minute
	}
	return time.Minute
}

// members holds the processes of one cluster, and their network.
type members struct {
	t *testing.T
	played
	net       *netem.Network
	server    *etcdServer // of the provider; nil: it needs none
	dir       string      // for logs and the lease store
	hosts     []string
	live      []*process // by index
	killed    []*process
	left      *process   // by SIGTERM, under load
	gone      []*process // by SIGTERM, at rest
	frozen    map[string]bool
	starts    []int          // how often each process was started
	late      bool           // it took longer to heal than the goal
	authority *pki.Authority // nil: no TLS
	broken    period         // while a fault of leases lasts
	silenced  []int          // members that did not reach the lease store
}

// period is an interval of the boot clock.
type period struct {
	from, until time.Duration
	where       []int // members that the fault hits
}

// start starts the members of a case and waits until they form a cluster under load.
func start(t *testing.T, p played) *members {
	t.Helper()
	n, nodes := p.n, p.n
	if p.provider == withEtcd {
		nodes++ // its server has its own node
	}
	c := &members{t: t, played: p, net: netem.New(t, nodes), starts: make([]int, n),
		live: make([]*process, n), frozen: map[string]bool{}}
	dir, err := os.MkdirTemp("", "concord-heal-") //nolint:usetesting // the logs of failures are kept
	if err != nil {
		t.Fatal(err)
	}
	c.dir = dir
	t.Cleanup(c.end)
	for i := range n {
		c.hosts = append(c.hosts, c.net.Addr(i))
	}
	if p.provider == withEtcd {
		c.server = startEtcd(t, c.net, n, dir)
	}
	for i := range n {
		c.launch(i)
	}
	c.await("start", whole(c, 0, nil))
	return c
}

func (c *members) launch(i int) {
	c.t.Helper()
	c.starts[i]++
	s := spec{
		Name: fmt.Sprintf("m%d.%d", i, c.starts[i]), Host: c.hosts[i], Hosts: c.hosts,
		Provider: c.provider,
		LeaseDir: filepath.Join(c.dir, "leases"), Instances: c.instances(), Leases: c.leases,
		Silent: c.silent(i), Chaos: c.chaos != "",
	}
	if c.chaos == durable {
		s.Data = filepath.Join(c.dir, fmt.Sprint("data-", i))
	}
	c.identify(i, &s)
	if *runs == 0 {
		s.StopTimeout = patience() * 2 / 3 // times are not measured
	}
	if c.server != nil {
		s.Etcd = c.server.address
	}
	c.live[i] = launch(c.t, s, filepath.Join(c.dir, s.Name+".log"), func(cmd *exec.Cmd) error {
		return c.net.Start(i, cmd)
	})
}

func (c *members) instances() string { return filepath.Join(c.dir, "instances") }

// silent returns the path of a file that prevents a member's lease store from answering while it
// exists.
func (c *members) silent(i int) string { return filepath.Join(c.dir, fmt.Sprint("silent-", i)) }

// await waits until all given conditions hold.
func (c *members) await(what string, conditions []condition) {
	c.t.Helper()
	began := time.Now()
	for end := began.Add(patience()); ; time.Sleep(poll) {
		missing := c.missing(conditions)
		if missing == "" {
			return
		}
		if time.Now().After(end) || c.exited() {
			c.t.Fatalf("%s: not after %v: %s", what, time.Since(began).Round(time.Second), missing)
		}
	}
}

// exited reports whether a process has exited that should be running.
func (c *members) exited() bool {
	return slices.ContainsFunc(c.live, func(p *process) bool { return p != nil && p.Ended() })
}

func (c *members) missing(conditions []condition) string {
	for _, x := range conditions {
		if m := x.missing(); m != "" {
			return x.name + ": " + m
		}
	}
	return ""
}

// end kills all running processes, and keeps the logs of a run that failed or was late.
func (c *members) end() {
	for _, p := range c.live {
		if p != nil {
			p.signal(syscall.SIGCONT)
			p.Kill()
		}
	}
	for _, p := range slices.Concat(c.live, c.killed, c.gone, []*process{c.left}) {
		if p == nil {
			continue
		}
		text, err := os.ReadFile(p.log)
		if err != nil {
			c.t.Errorf("%s: %v", p.Name, err)
		}
		for _, r := range races.Reported(string(text)) {
			c.t.Errorf("%s: %s", p.Name, r)
		}
		if c.t.Failed() {
			c.t.Logf("the end of the log of %s:\n%s", p.Name, tail(string(text), 40))
		}
	}
	if c.t.Failed() || c.late {
		c.t.Logf("all logs are kept in %s", c.dir)
		return
	}
	_ = os.RemoveAll(c.dir)
}

// noise matches messages that Proto.Actor logs repeatedly.
var noise = regexp.MustCompile(
	`node health status|Failure reaching nodes|msg="?((Started )?Endpoint|Got member|onClusterTopology|Update cluster)`)

// tail returns the last lines of a log, without noise.
func tail(text string, lines int) string {
	var out []string
	for l := range strings.Lines(text) {
		if !noise.MatchString(l) {
			out = append(out, l)
		}
	}
	return strings.Join(out[max(0, len(out)-lines):], "")
}
