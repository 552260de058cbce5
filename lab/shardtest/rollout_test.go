package shardtest_test

import (
	"flag"
	"os/exec"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/ports"
)

var whole = flag.Bool("whole", false, "also what takes long: see make heal")

// A rolling update adds a type, a singleton and, the second time, a role that both need. Each new
// member becomes ready and serves both while members of the old version run. Then another update
// removes them.
func TestReal_Rollout(t *testing.T) {
	for name, role := range map[string]string{"type and singleton": "", "and role": "carts"} {
		t.Run(name, func(t *testing.T) {
			if role != "" && !*whole {
				t.Skip("in make heal")
			}
			rollOut(t, role)
		})
	}
}

func rollOut(t *testing.T, role string) {
	c := newMembers(t, 12)
	at := ports.Free(t, 9)
	for i := range 3 {
		c.launch((*exec.Cmd).Start, spec{Host: "127.0.0.1", Port: at[i], Old: true})
	}
	c.together()
	fresh := func() (out []*process) {
		for i, p := range c.live {
			if p != nil && i >= 3 && i < 6 {
				out = append(out, p)
			}
		}
		return out
	}
	for i := range 3 {
		begun := time.Now()
		p := c.launch((*exec.Cmd).Start, spec{Host: "127.0.0.1", Port: at[3+i], Role: role})
		p.here = *c.answer(p, func(a answer) bool { return a.Here != nil }).Here
		c.list()
		c.answer(p, func(a answer) bool { return a.Ready })
		c.works(fresh())
		t.Logf("%s was ready and served after %v", p.name, time.Since(begun))
		if !*whole {
			return
		}
		c.leaves(i)
		c.works(fresh())
	}
	for i := range 3 {
		p := c.launch((*exec.Cmd).Start, spec{Host: "127.0.0.1", Port: at[6+i], Old: true})
		p.here = *c.answer(p, func(a answer) bool { return a.Here != nil }).Here
		c.list()
		c.answer(p, func(a answer) bool { return a.Ready })
		c.works(fresh())
		c.leaves(3 + i)
		if i < 2 {
			c.works(fresh())
		}
	}
}

// works waits until processes have all shards, and reach the singleton.
func (c *members) works(at []*process) {
	c.t.Helper()
	c.serve(at...)
	for _, p := range at {
		c.tell(p, command{Clerk: patience})
		c.answer(p, func(a answer) bool { return a.Clerk })
	}
}

// leaves ends a process in order.
func (c *members) leaves(i int) {
	c.t.Helper()
	c.live[i].Hangup()
	c.gone(i)
	c.list()
}
