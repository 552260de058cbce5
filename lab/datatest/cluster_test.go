package datatest_test

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/ports"
	"github.com/concord-go/concord/internal/races"
	"github.com/concord-go/concord/lab/internal/listing"
	"github.com/concord-go/concord/lab/netem"
)

// patience bounds everything that must happen eventually. It says nothing about how fast it
// happens.
const patience = 60 * time.Second

// members are the processes of one cluster, and their network.
type members struct {
	t     *testing.T
	net   *netem.Network // nil: loopback
	specs []spec
	live  []*process       // by index; nil: killed
	list  []listing.Member // by index
}

// start starts n members, whose links can fail if the machine allows it.
func start(t *testing.T, n int) *members {
	t.Helper()
	c := &members{t: t}
	if err := netem.Possible(); err == nil || os.Getenv("CI") == "true" {
		c.net = netem.New(t, n)
	} else {
		t.Logf("NOT TESTED: partitions and faults of links, netem cannot run here (%v); processes are only killed", err)
	}
	c.specs = c.addresses(n)
	for i := range c.specs {
		c.specs[i].MinMembers = 3
	}
	c.begin()
	return c
}

// begin starts the members of the specs.
func (c *members) begin() {
	c.t.Helper()
	c.live, c.list = make([]*process, len(c.specs)), make([]listing.Member, len(c.specs))
	for i := range c.specs {
		c.launch(i)
	}
	c.tell()
	for i := range c.specs {
		c.await(i)
	}
}

// addresses returns nodes of the network, or ports on loopback.
func (c *members) addresses(n int) (out []spec) {
	c.t.Helper()
	if c.net == nil {
		for _, port := range ports.Free(c.t, n) {
			out = append(out, spec{Host: "127.0.0.1", Port: port})
		}
		return out
	}
	for i := range n {
		out = append(out, spec{Host: c.net.Addr(i), Port: 6000})
	}
	return out
}

// place adds a place for a further process.
func (c *members) place(s spec) (i int) {
	c.specs, c.live = append(c.specs, s), append(c.live, nil)
	c.list = append(c.list, listing.Member{})
	return len(c.live) - 1
}

// launch starts the i-th process, which then waits to be listed.
func (c *members) launch(i int) {
	c.t.Helper()
	by := (*exec.Cmd).Start
	if c.net != nil {
		by = func(cmd *exec.Cmd) error { return c.net.Start(i, cmd) }
	}
	p := launch(c.t, c.specs[i], by)
	c.live[i] = p
	c.t.Cleanup(func() { c.end(i, p) })
	select {
	case c.list[i] = <-p.here:
	case err := <-p.ready:
		c.t.Fatalf("member %d: %v", i, err)
	case <-p.Gone():
		c.t.Fatalf("member %d is gone: %s", i, p.Stderr())
	case <-time.After(patience):
		c.t.Fatalf("member %d does not listen", i)
	}
}

// tell makes every live process list all live processes.
func (c *members) tell() {
	c.t.Helper()
	var all []listing.Member
	for i, p := range c.live {
		if p != nil {
			all = append(all, c.list[i])
		}
	}
	for i, p := range c.live {
		if p != nil {
			if _, err := p.call(command{Do: "list", List: all}); err != nil {
				c.t.Fatalf("member %d: %v", i, err)
			}
		}
	}
}

// await waits until the i-th member is ready.
func (c *members) await(i int) {
	c.t.Helper()
	select {
	case err := <-c.live[i].ready:
		if err != nil {
			c.t.Fatalf("member %d: %v", i, err)
		}
	case <-c.live[i].Gone():
		c.t.Fatalf("member %d is gone: %s", i, c.live[i].Stderr())
	}
}

// kill kills a process with SIGKILL; the others are notified at once.
func (c *members) kill(i int) {
	c.t.Helper()
	p := c.live[i]
	p.Kill()
	c.live[i] = nil
	c.check(i, p)
	c.tell()
}

// killAll kills all processes with SIGKILL at once.
func (c *members) killAll() {
	c.t.Helper()
	for _, p := range c.live {
		if p != nil {
			_ = p.Signal(os.Kill)
		}
	}
	for i, p := range c.live {
		if p != nil {
			<-p.Gone()
			c.live[i] = nil
			c.check(i, p)
		}
	}
}

// restart starts a process in place of a killed one, and waits until it is ready.
func (c *members) restart(i int) {
	c.t.Helper()
	c.launch(i)
	c.tell()
	c.await(i)
}

// part cuts the members off from those of the other side, in both directions.
func (c *members) part(side, other []int) {
	if c.net == nil {
		return
	}
	for _, a := range side {
		for _, b := range other {
			c.net.Set(a, b, netem.Link{Cut: true})
			c.net.Set(b, a, netem.Link{Cut: true})
		}
	}
}

// parted reports whether part has an effect.
func (c *members) parted() bool { return c.net != nil }

func (c *members) heal() {
	if c.net != nil {
		c.net.Heal()
	}
}

// try makes the i-th member carry out a command, within a time limit.
func (c *members) try(i int, do command) error {
	if do.Within == 0 {
		do.Within = patience
	}
	a, err := c.live[i].call(do)
	switch {
	case err != nil:
		return fmt.Errorf("member %d: %w", i, err)
	case a.Quorum:
		return fmt.Errorf("member %d: %w: %s", i, distributeddata.ErrQuorum, a.Err)
	case a.Err != "":
		return fmt.Errorf("member %d: %s", i, a.Err)
	}
	return nil
}

// do is try, and must succeed. It must be called on the goroutine of the test.
func (c *members) do(i int, do command) {
	c.t.Helper()
	if err := c.try(i, do); err != nil {
		c.t.Fatalf("%s: %v", do.Do, err)
	}
}

// dump returns the content of the i-th member.
func (c *members) dump(i int, level distributeddata.Consistency) *dump {
	c.t.Helper()
	a, err := c.live[i].call(command{Do: "dump", Level: level, Within: patience})
	if err != nil || a.Dump == nil {
		c.t.Fatalf("dump of member %d: %v %s", i, err, a.Err)
	}
	return a.Dump
}

// eventually waits until f returns "".
func (c *members) eventually(f func() string) {
	c.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		problem := f()
		if problem == "" {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("not within %v: %s", patience, problem)
		}
	}
}

// alike waits until all live members hold the same bytes, and returns them.
func (c *members) alike() *dump {
	c.t.Helper()
	var first *dump
	c.eventually(func() string {
		first = nil
		for i, p := range c.live {
			if p == nil {
				continue
			}
			d := c.dump(i, distributeddata.Local)
			if first == nil {
				first = d
			}
			if d.Hash != first.Hash || d.Seen != first.Seen {
				return fmt.Sprintf(
					"member %d has %d numbers, %d hits, %d of %s; another %d, %d, %d of %s", i,
					len(d.Numbers), d.Hits, d.Balance, d.Seen, len(first.Numbers), first.Hits,
					first.Balance, first.Seen)
			}
		}
		return ""
	})
	return first
}

// running returns the live processes.
func (c *members) running() (all []*process) {
	for _, p := range c.live {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

// each calls f for each of some members concurrently, and waits. f must not fail the test itself.
func each(some []int, f func(i int) error) error {
	errs := make(chan error, len(some))
	var wg sync.WaitGroup
	for _, i := range some {
		wg.Go(func() { errs <- f(i) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// end kills a process that is still a live member, after a look at the status of its replica.
func (c *members) end(i int, p *process) {
	if c.live[i] != p {
		return
	}
	if a, err := p.call(command{Do: "dump", Within: patience}); err == nil && a.Dump != nil {
		s := a.Dump.Status
		if s.Diverged+s.Corrupted+s.Mended+s.Malformed != 0 {
			c.t.Errorf("member %d: diverged %d, corrupted %d, mended %d, malformed %d", i,
				s.Diverged, s.Corrupted, s.Mended, s.Malformed)
		}
	}
	p.Kill()
	c.check(i, p)
}

// check examines what a process left behind.
func (c *members) check(i int, p *process) {
	for _, r := range races.Reported(p.Stderr()) {
		c.t.Errorf("member %d: %s", i, r)
	}
}
