//go:build linux

package healtest_test

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Leases of members in addition to the singleton's.
const (
	withGuard = "guard" // one for each member
)

const (
	// longTTL is the TTL in cases with a guard: the rest of a lease when the guard stops guarded
	// work must be long compared with the delays of a busy machine.
	longTTL = 18 * time.Second
	// decided is the time after which only the majority hosts: the time after which the provider
	// drops a silent member, plus that of a call of the store, plus the time in which the instance
	// stops, on a busy machine.
	decided = 10 * time.Second
)

var longLeases = coordination.Config{
	TTL: longTTL, RenewInterval: 2 * time.Second, OperationTimeout: time.Second,
	RetryInterval: 200 * time.Millisecond, Drain: 2500 * time.Millisecond,
	Margin: 500 * time.Millisecond,
}

// store returns the file store, which does not answer while the file Silent exists.
func (m *member) store() (coordination.Store, error) {
	s, err := file.Open(m.LeaseDir)
	if err != nil || m.Silent == "" {
		return s, err
	}
	return silenced{s, m.Silent}, nil
}

type silenced struct {
	file.Store
	by string
}

func (s silenced) wait(ctx context.Context) error {
	for {
		if _, err := os.Stat(s.by); err != nil {
			return nil //nolint:nilerr // the file does not exist
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Load implements coordination.Store.
func (s silenced) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	if err := s.wait(ctx); err != nil {
		return leasestore.Record{}, "", err
	}
	return s.Store.Load(ctx, name)
}

// Swap implements coordination.Store.
func (s silenced) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := s.wait(ctx); err != nil {
		return "", err
	}
	return s.Store.Swap(ctx, name, old, next)
}

// Remove implements leasestore.Remover.
func (s silenced) Remove(ctx context.Context, name string, old leasestore.Version) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.Store.Remove(ctx, name, old)
}

// host returns the member that answered the latest request to the singleton.
func (c *members) host() int {
	c.t.Helper()
	var latest answered
	for _, p := range c.live {
		for _, a := range p.now().answers {
			if a.At > latest.At {
				latest = a
			}
		}
	}
	_, name, _ := strings.Cut(latest.By, " ")
	at := slices.IndexFunc(c.live, func(p *process) bool { return p.Name == processOf(name) })
	if at < 0 {
		c.t.Fatalf("the latest answer is %q, which is of none of the members", latest.By)
	}
	return at
}

// nothing causes no fault, for a clean run.
func nothing(c *members, _ *rand.Rand, _ time.Duration) {}

// noErrors checks that members logged no errors from the start to the end.
func noErrors(c *members) {
	for _, p := range append(slices.Clone(c.gone), c.left) {
		text, err := os.ReadFile(p.log)
		if err != nil {
			c.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "level=ERROR") {
				c.t.Errorf("%s, of a cluster without a fault, logs an error: %s", p.Name, line)
			}
		}
	}
}

// silentStore cuts the member that hosts the singleton off from its lease store, for longer than
// its leases last.
func silentStore(c *members, _ *rand.Rand, d time.Duration) {
	x := c.host()
	d += longTTL + 10*time.Second
	c.broken = period{from: bootTime(), where: []int{x}}
	if err := os.WriteFile(c.silent(x), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.t.Logf("the lease store does not answer %d, the host, for %v", x, d)
	time.Sleep(d)
	if err := os.Remove(c.silent(x)); err != nil {
		c.t.Fatal(err)
	}
	c.broken.until = bootTime()
}

// stoppedInTime checks that guarded work ends before the guard lease does. That lease was renewed
// at the earliest one interval and one operation before the store fell silent. Another member hosts
// once the lease of the singleton has expired.
func stoppedInTime(c *members) {
	bound := c.broken.from + longTTL - longLeases.RenewInterval -
		longLeases.OperationTimeout - longLeases.Margin
	elsewhere := false
	for _, l := range c.recorded() {
		switch here := slices.Contains(c.broken.where, l.at); {
		case here && l.from < c.broken.until && l.until > bound:
			c.t.Errorf("%s went on for %v after the lease store fell silent: its guard lease may have ended %v after that",
				l.name, l.until-c.broken.from, bound-c.broken.from)
		case !here && l.from > c.broken.from && l.from < c.broken.until:
			elsewhere = true
		}
	}
	if !elsewhere {
		c.t.Errorf("no other member hosted in the %v in which the lease store did not answer the host", c.broken.until-c.broken.from)
	}
}

// cutWithHost cuts off the member that hosts the singleton, with as many others as a minority may
// have.
func cutWithHost(c *members, r *rand.Rand, d time.Duration) {
	host := c.host()
	others := slices.DeleteFunc(r.Perm(c.n), func(i int) bool { return i == host })
	k := r.IntN((c.n - 1) / 2)
	minority, rest := append([]int{host}, others[:k]...), others[k:]
	d += decided + leaseTTL + 10*time.Second
	c.broken = period{from: bootTime(), where: minority}
	apart(func([]int) [][]int { return [][]int{slices.Clone(minority), rest} })(c, r, d)
	c.broken.until = bootTime()
}

// majorityHosts checks that the other side hosts before the cut ends, although the lease store
// answers both sides.
func majorityHosts(c *members) {
	after, hosted := c.broken.from+decided, false
	for _, l := range c.recorded() {
		switch here := slices.Contains(c.broken.where, l.at); {
		case here && l.from < c.broken.until && l.until > after:
			c.t.Errorf("%s, of the minority, lived from %v after the cut began to %v, want no longer than %v", l.name,
				l.from-c.broken.from, l.until-c.broken.from, decided)
		case !here && l.from < c.broken.until && l.until > after:
			hosted = true
		}
	}
	if !hosted {
		c.t.Errorf("the majority did not host in the %v of the cut", c.broken.until-c.broken.from)
	}
}

// placed is an instance with the index of its member.
type placed struct {
	lived
	at int
}

func (c *members) recorded() (all []placed) {
	c.t.Helper()
	instances, err := readInstances(c.instances())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range instances {
		at := slices.IndexFunc(c.hosts, func(host string) bool {
			return slices.ContainsFunc(slices.Concat(c.gone, c.killed, []*process{c.left}),
				func(p *process) bool {
					return p.Host == host && p.Name == processOf(l.name)
				})
		})
		all = append(all, placed{l, at})
	}
	return all
}
