package shardtest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/ports"
)

// event is a line that an instance of the singleton has written.
type event struct {
	at, what string
	when     time.Time
}

// events returns what the instances have written.
func (c *members) events() (out []event) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, "clerk"))
	require.NoError(c.t, err)
	for row := range strings.Lines(string(text)) {
		var e event
		var nanos int64
		_, err := fmt.Sscan(row, &e.at, &e.what, &nanos)
		require.NoError(c.t, err, "%q", row)
		e.when = time.Unix(0, nanos)
		out = append(out, e)
	}
	return out
}

// event waits until an instance has written a line.
func (c *members) event(is func(event) bool) event {
	c.t.Helper()
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(20 * time.Millisecond) {
		for _, e := range c.events() {
			if is(e) {
				return e
			}
		}
	}
	c.t.Fatalf("no such event among %v", c.events())
	return event{}
}

// clerk asks the singleton at a process, and returns the member that has answered.
func (c *members) clerk(p *process, within time.Duration) (at string, ok bool) {
	c.t.Helper()
	c.tell(p, command{Clerk: within})
	select {
	case a := <-p.says:
		return a.At, a.Clerk && a.Err == ""
	case <-time.After(patience):
		c.t.Fatalf("%s does not answer", p.name)
		return "", false
	}
}

// blocked lets the instance block, and returns the process that hosts it, and the others.
func (c *members) blocked() (host *process, others []*process) {
	c.t.Helper()
	name, ok := c.clerk(c.live[0], patience)
	require.True(c.t, ok)
	for _, p := range c.live {
		if p.name == name {
			host = p
		} else {
			others = append(others, p)
		}
	}
	c.tell(host, command{Block: true})
	c.event(func(e event) bool { return e.what == "blocks" })
	return host, others
}

// release lets the instances return.
func (c *members) release() {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(filepath.Join(c.dir, "release"), nil, 0o600))
}

// The host of the singleton loses its lease, since the store does not answer it, while its instance
// blocks in Receive. Another member gets an instance, and every member reaches that one, also the
// former host; when the store answers again the instance stays where it is.
func TestReal_ClerkIsReachedWhileAFormerHostBlocks(t *testing.T) {
	if !*whole {
		t.Skip("in make heal")
	}
	c := start(t, 3, 12)
	c.settled()
	host, others := c.blocked()
	away := c.away() + "-" + host.name
	require.NoError(t, os.WriteFile(away, nil, 0o600))
	begun := time.Now()
	there := ""
	for ok := false; !ok; there, ok = c.clerk(others[0], time.Second) {
		require.Less(t, time.Since(begun), patience, "nobody answers for the singleton")
	}
	t.Logf("%s answers %v after the outage began, with a TTL of %v", there, time.Since(begun), ttl)
	require.NotEqual(t, host.name, there)
	answered := func(while string) {
		for _, p := range c.live {
			at, ok := c.clerk(p, 5*time.Second)
			require.True(t, ok, "%s gets no answer %s", p.name, while)
			require.Equal(t, there, at, while)
		}
	}
	answered("during the outage")
	require.NoError(t, os.Remove(away))
	for back := time.Now(); time.Since(back) < 2*ttl; time.Sleep(ttl / 12) {
		answered("after the outage")
	}
	starts := 0
	for _, e := range c.events() {
		if e.what == "started" {
			starts++
		}
	}
	require.Equal(t, 2, starts)
	c.release()
}

// The host of the singleton stops, with a deadline, while its instance is in Receive, and its
// process goes on. Its lease is kept until it expires: the next instance starts after that, not
// when the session of the host has closed.
func TestReal_ClerkKeepsItsLeaseWhenItsMemberStops(t *testing.T) {
	if !*whole {
		t.Skip("in make heal")
	}
	const stop = 2 * time.Second
	c := newMembers(t, 12)
	for _, port := range ports.Free(t, 3) {
		c.launch((*exec.Cmd).Start, spec{Host: "127.0.0.1", Port: port, Stop: stop,
			Waits: true})
	}
	c.together()
	c.settled()
	host, others := c.blocked()
	begun := time.Now()
	host.Hangup()
	next := c.event(func(e event) bool { return e.what == "started" && e.at != host.name })
	took := next.when.Sub(begun)
	t.Logf("the next instance started %v after the member began to stop", took)
	require.False(t, host.Ended(), "the former instance is still in Receive")
	require.Greater(t, took, stop+ttl/2, "the lease was released")
	at, ok := c.clerk(others[0], patience)
	require.True(t, ok)
	require.Equal(t, next.at, at)
	c.release()
	held := c.event(func(e event) bool { return e.what == "held" && e.at == host.name })
	require.True(t, held.when.Before(next.when), "two members held the lease")
}
