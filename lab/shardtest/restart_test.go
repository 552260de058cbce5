package shardtest_test

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/ports"
)

// One of three members is killed for good. While it is missing, the other two are restarted, one
// after the other with SIGTERM, or one of them with SIGKILL. After each restart the two serve all
// shards and the singleton. A member that stops in order reports that no majority has its
// replicated data.
func TestReal_RestartsWhileAMemberIsGone(t *testing.T) {
	for name, restarts := range map[string]func(*members){
		"in order": func(c *members) {
			c.restart(1, syscall.SIGTERM)
			c.restart(2, syscall.SIGTERM)
		},
		"killed": func(c *members) { c.restart(1, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newMembers(t, 12)
			for _, port := range ports.Free(t, 3) {
				c.launch((*exec.Cmd).Start, spec{Host: "127.0.0.1", Port: port, Stop: stops})
			}
			c.together()
			c.settled()
			c.live[0].Kill()
			c.live[0] = nil
			c.list()
			restarts(c)
		})
	}
}

// stops is the StopTimeout of members that cannot hand over what they replicate.
const stops = 3 * time.Second

// restart ends the i-th process, starts another one at its address, and waits until all serve.
func (c *members) restart(i int, how syscall.Signal) {
	c.t.Helper()
	was, begun := c.live[i], time.Now()
	require.NoError(c.t, was.Signal(how))
	<-was.Gone()
	c.live[i] = nil
	ended := time.Now()
	c.list()
	p := c.launch((*exec.Cmd).Start, spec{Host: was.here.Host, Port: was.here.Port, Stop: stops})
	p.here = *c.answer(p, func(a answer) bool { return a.Here != nil }).Here
	c.list()
	c.answer(p, func(a answer) bool { return a.Ready })
	c.works(c.here())
	c.t.Logf("%s ended after %v (%v), and %s in its place served after another %v; TTL %v", was.name,
		ended.Sub(begun).Round(time.Millisecond), how, p.name,
		time.Since(ended).Round(time.Millisecond), ttl)
}
