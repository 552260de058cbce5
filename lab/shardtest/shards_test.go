package shardtest_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/lab/internal/listing"
	"github.com/concord-go/concord/lab/netem"
)

// patience bounds the wait for every expected event. The tests make no claim about speed.
const patience = 60 * time.Second

// members are the processes of one cluster.
type members struct {
	t      *testing.T
	dir    string
	shards int
	live   []*process // by index; nil: gone
}

type process struct {
	*child.Process
	name string
	here listing.Member
	says chan answer // answers except those about completed sends
	sent chan answer
}

func start(t *testing.T, n, shards int) *members {
	t.Helper()
	return startOn(t, nil, n, shards)
}

// startOn starts processes, each on a node of a network; nil: all on the loopback interface.
func startOn(t *testing.T, net *netem.Network, n, shards int) *members {
	t.Helper()
	c := newMembers(t, shards)
	for i, port := range ports.Free(t, n) {
		host, starts := "127.0.0.1", (*exec.Cmd).Start
		if net != nil {
			host, starts = net.Addr(i), func(cmd *exec.Cmd) error { return net.Start(i, cmd) }
		}
		c.launch(starts, spec{Host: host, Port: port})
	}
	c.together()
	return c
}

func newMembers(t *testing.T, shards int) *members {
	t.Helper()
	c := &members{t: t, dir: t.TempDir(), shards: shards}
	require.NoError(t, os.Mkdir(filepath.Join(c.dir, "leases"), 0o700))
	return c
}

// launch starts a process.
func (c *members) launch(starts func(*exec.Cmd) error, s spec) *process {
	c.t.Helper()
	s.Name, s.Dir, s.Away = fmt.Sprint("m", len(c.live)), c.dir, c.away()
	s.Shards = cmp.Or(s.Shards, c.shards)
	p := &process{name: s.Name, says: make(chan answer, 100), sent: make(chan answer, 10)}
	text, err := json.Marshal(s)
	require.NoError(c.t, err)
	p.Process = child.StartBy(c.t, starts, []string{memberEnv + "=" + string(text)},
		func(line []byte) {
			var a answer
			switch err := json.Unmarshal(line, &a); {
			case err != nil:
			case a.Sent:
				p.sent <- a
			default:
				p.says <- a
			}
		})
	c.live = append(c.live, p)
	return p
}

// together waits until all processes run, lets them list each other, and waits until they are
// ready.
func (c *members) together() {
	c.t.Helper()
	for _, p := range c.live {
		p.here = *c.answer(p, func(a answer) bool { return a.Here != nil }).Here
	}
	c.list()
	for _, p := range c.live {
		c.answer(p, func(a answer) bool { return a.Ready })
	}
}

// answer waits for an answer of a process.
func (c *members) answer(p *process, is func(answer) bool) answer {
	c.t.Helper()
	return c.wait(p, p.says, is)
}

// sent waits until a process has sent all its messages.
func (c *members) sent(p *process) {
	c.t.Helper()
	c.wait(p, p.sent, func(answer) bool { return true })
}

func (c *members) wait(p *process, says chan answer, is func(answer) bool) answer {
	c.t.Helper()
	for {
		select {
		case a := <-says:
			if is(a) {
				require.Empty(c.t, a.Err)
				return a
			}
		case <-p.Gone():
			c.t.Fatalf("%s is gone: %s", p.name, p.Stderr())
		case <-time.After(patience):
			c.t.Fatalf("%s does not answer", p.name)
		}
	}
}

func (c *members) tell(p *process, do command) {
	c.t.Helper()
	line, err := json.Marshal(do)
	require.NoError(c.t, err)
	require.NoError(c.t, p.Say(string(line)))
}

// here returns the running processes.
func (c *members) here() []*process {
	return slices.DeleteFunc(slices.Clone(c.live), func(p *process) bool { return p == nil })
}

// away is the path of a file; while it exists, the lease store does not answer.
func (c *members) away() string { return filepath.Join(c.dir, "away") }

// list makes all processes list each other.
func (c *members) list() {
	c.t.Helper()
	c.group(c.here()...)
}

// group makes processes list each other, and no others.
func (c *members) group(processes ...*process) {
	c.t.Helper()
	var all []listing.Member
	for _, p := range processes {
		all = append(all, p.here)
	}
	for _, p := range processes {
		c.tell(p, command{List: all})
	}
}

// settled waits until all shards are active.
func (c *members) settled() time.Duration {
	c.t.Helper()
	return c.serve(c.here()...)
}

// serve waits until all shards are active at some of the processes.
func (c *members) serve(at ...*process) time.Duration {
	c.t.Helper()
	begun := time.Now()
	for active := 0; active != c.shards; time.Sleep(50 * time.Millisecond) {
		active = 0
		for _, p := range at {
			active += c.active(p)
		}
		if time.Since(begun) > patience {
			c.t.Fatalf("%d shards are active after %v", active, patience)
		}
	}
	return time.Since(begun)
}

// active returns how many shards are active at a process.
func (c *members) active(p *process) int {
	c.t.Helper()
	c.tell(p, command{Active: true})
	return *c.answer(p, func(a answer) bool { return a.Active != nil }).Active
}

// hosts waits until a process has at least the given number of shards.
func (c *members) hosts(p *process, shards int) {
	c.t.Helper()
	for begun := time.Now(); c.active(p) < shards; time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > patience {
			c.t.Fatalf("%s does not get %d shards", p.name, shards)
		}
	}
	c.settled()
}

// line is a line written by an entity.
type line struct {
	token      uint64
	at, sender string
	n          int
}

// handled returns the messages that each entity has handled, in order. Decreasing tokens, or one
// token at two members, would mean that an entity was alive twice.
func (c *members) handled(entities int) (out [][]line) {
	c.t.Helper()
	out = c.written(entities)
	for e, lines := range out {
		for i := 1; i < len(lines); i++ {
			last, l := lines[i-1], lines[i]
			require.GreaterOrEqual(c.t, l.token, last.token, "entity %d: the token falls", e)
			if l.token == last.token {
				require.Equal(c.t, last.at, l.at, "entity %d: two members have token %d", e,
					l.token)
			}
		}
	}
	return out
}

// written returns the lines of each entity's file.
func (c *members) written(entities int) (out [][]line) {
	c.t.Helper()
	for e := range entities {
		text, err := os.ReadFile(filepath.Join(c.dir, fmt.Sprint("e", e)))
		require.NoError(c.t, err)
		var lines []line
		for row := range strings.Lines(string(text)) {
			var l line
			_, err := fmt.Sscan(row, &l.token, &l.at, &l.sender, &l.n)
			require.NoError(c.t, err, "%q", row)
			lines = append(lines, l)
		}
		out = append(out, lines)
	}
	return out
}

// numbers returns the numbers of the messages of one sender.
func numbers(lines []line, sender string) (out []int) {
	for _, l := range lines {
		if l.sender == sender {
			out = append(out, l.n)
		}
	}
	return out
}

const entities = 30

// gone waits until the i-th member has left.
func (c *members) gone(i int) {
	c.t.Helper()
	select {
	case <-c.live[i].Gone():
	case <-time.After(patience):
		c.t.Fatal("it does not leave")
	}
	require.Zero(c.t, c.live[i].ExitCode(), c.live[i].Stderr())
	c.live[i] = nil
}

// A member leaves in order while all others send: every message is handled once and in order.
func TestReal_LeaveLosesNothing(t *testing.T) {
	c := start(t, 3, 24)
	c.settled()
	const n = 400
	for _, p := range c.live {
		c.tell(p, command{Send: n, Entities: entities})
	}
	c.sent(c.live[0]) // it leaves after sending everything
	left := c.live[0]
	left.Hangup()
	for _, p := range c.live[1:] {
		c.tell(p, command{Send: n, Entities: entities})
	}
	c.gone(0)
	c.list()
	for _, p := range c.here() {
		for range 2 {
			c.sent(p)
		}
	}
	t.Log("all shards are active again after", c.settled())
	want := func(n int) (out []int) {
		for k := range n {
			out = append(out, k)
		}
		return out
	}
	require.Eventually(t, func() bool {
		for _, lines := range c.handled(entities) {
			if len(lines) != 5*n {
				return false
			}
		}
		return true
	}, patience, 100*time.Millisecond, "messages are lost")
	for e, lines := range c.handled(entities) {
		require.Equal(t, want(n), numbers(lines, "m0"), "entity %d", e)
		require.Equal(t, want(2*n), numbers(lines, "m1"), "entity %d", e)
		require.Equal(t, want(2*n), numbers(lines, "m2"), "entity %d", e)
	}
}

// many sets the number of shards in the tests with many shards to the promised one, and enforces
// the promised time.
var many = flag.Int("shards", 0,
	"shards that a member leaves with or is killed with; 0: 20, whatever time that takes")

func manyShards() int {
	if *many > 0 {
		return *many
	}
	return 20
}

// serveAgain waits until all shards are active. With -shards it fails if that took longer than the
// leases plus three seconds, which a busy machine may not meet.
func (c *members) serveAgain(killed time.Time) {
	c.t.Helper()
	c.settled()
	took, bound := time.Since(killed), ttl*101/100+3*time.Second
	c.t.Logf("all %d shards are active again %v after the kill; TTL %v, bound %v", c.shards,
		took.Round(time.Millisecond), ttl, bound)
	if *many > 0 && took > bound {
		c.t.Errorf("all shards are active again %v after the kill, the bound is %v", took, bound)
	}
}

// A member with many shards leaves.
func TestReal_LeaveWithManyShards(t *testing.T) {
	c := start(t, 3, 3*manyShards())
	t.Log("all shards are active after", c.settled())
	left := c.live[1]
	c.hosts(left, manyShards()*9/10)
	begun := time.Now()
	left.Hangup()
	c.gone(1)
	t.Logf("a member with about %d shards has left after %v", manyShards(),
		time.Since(begun).Round(time.Millisecond))
	c.list()
	c.settled()
	t.Log("all shards are active again after", time.Since(begun).Round(time.Millisecond))
}

// A member with many shards is killed.
func TestReal_KillWithManyShards(t *testing.T) {
	c := start(t, 3, 3*manyShards())
	c.hosts(c.live[0], manyShards()*9/10)
	c.live[0].Kill()
	c.live[0] = nil
	killed := time.Now()
	c.list()
	c.serveAgain(killed)
}

// A member is killed while all others send: its shards come back, and no message is handled twice
// or out of order.
func TestReal_KillShardsComeBack(t *testing.T) {
	c := start(t, 3, 24)
	c.settled()
	const n = 400
	for _, p := range c.live {
		c.tell(p, command{Send: n, Entities: entities})
	}
	time.Sleep(time.Second)
	c.live[0].Kill()
	c.live[0] = nil
	killed := time.Now()
	c.list()
	c.serveAgain(killed)
	for _, p := range c.here() {
		c.sent(p)
		c.tell(p, command{Send: n, Entities: entities})
	}
	for _, p := range c.here() {
		c.sent(p)
	}
	c.until(2*n-1, "m1", "m2")
}

// until waits until the last message of each sender has come to each entity. It then checks that no
// message was handled twice or out of order.
func (c *members) until(last int, senders ...string) {
	c.t.Helper()
	ended := func() bool {
		for _, lines := range c.handled(entities) {
			for _, sender := range senders {
				if of := numbers(lines, sender); len(of) == 0 || of[len(of)-1] != last {
					return false
				}
			}
		}
		return true
	}
	require.Eventually(c.t, ended, patience, 100*time.Millisecond)
	for e, lines := range c.handled(entities) {
		for _, sender := range []string{"m0", "m1", "m2"} {
			of := numbers(lines, sender)
			require.True(c.t, slices.IsSorted(of), "entity %d, %s: %v", e, sender, of)
			require.Equal(c.t, len(of), len(slices.Compact(slices.Clone(of))),
				"entity %d, %s: handled twice", e, sender)
		}
	}
}

// Two members deliver messages while shards move away from a third, which leaves, and while a
// fourth is killed: every message is handled, and those of one sender to one entity in order.
func TestReal_DeliversInSpiteOfALeaveAndAKill(t *testing.T) {
	c := start(t, 4, 24)
	c.settled()
	const n = 400
	senders := []*process{c.live[0], c.live[1]}
	for _, p := range senders {
		c.tell(p, command{Send: n, Entities: entities, Deliver: true})
	}
	c.live[2].Hangup()
	c.gone(2)
	c.list()
	c.live[3].Kill()
	c.live[3] = nil
	c.list()
	for _, p := range senders {
		c.sent(p)
	}
	again := 0
	for e, lines := range c.handled(entities) {
		for _, p := range senders {
			got, seen := []int(nil), map[int]bool{}
			for _, k := range numbers(lines, p.name) {
				if !seen[k] {
					got = append(got, k)
				}
				seen[k] = true
			}
			require.True(t, slices.IsSorted(got), "entity %d, %s: %v", e, p.name, got)
			require.Len(t, got, n, "entity %d, %s", e, p.name)
			again += len(numbers(lines, p.name)) - n
		}
	}
	t.Logf("%d messages delivered, %d were handled again", len(senders)*n*entities, again)
}

// At a cold start the number of shards is that of most members: the oldest, which has another one,
// ends, and the others host.
func TestReal_AMemberWithAnotherNumberOfShardsEnds(t *testing.T) {
	c := newMembers(t, 12)
	for i, port := range ports.Free(t, 4) {
		s := spec{Host: "127.0.0.1", Port: port}
		if i == 0 {
			s.Shards = 10
		}
		p := c.launch((*exec.Cmd).Start, s)
		p.here = *c.answer(p, func(a answer) bool { return a.Here != nil }).Here
	}
	c.list()
	wrong := c.live[0]
	select {
	case <-wrong.Gone():
	case <-time.After(patience):
		t.Fatalf("it runs: %s", wrong.Stderr())
	}
	require.Equal(t, 1, wrong.ExitCode())
	require.Regexp(t, "10.*12|12.*10", wrong.Stderr())
	c.live[0] = nil
	c.list()
	for _, p := range c.here() {
		c.answer(p, func(a answer) bool { return a.Ready })
	}
	c.settled()
}
