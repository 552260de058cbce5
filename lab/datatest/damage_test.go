package datatest_test

import (
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/store"
)

var damages = flag.Int("damages", 0,
	"how often a disk of each cluster is damaged after a kill; 0: a few times, of one cluster")

// TestReal_Damage kills one member, or all at once, with SIGKILL, again and again, while clients
// count, add and remove. Then bits of the directory of one killed member flip, or one of its files
// loses its end. All are restarted. All hold the same bytes then, no acknowledged update is lost,
// none counts twice, and no acknowledged removal is undone.
func TestReal_Damage(t *testing.T) {
	for _, b := range []blackout{
		{n: 3, engine: "bbolt", sample: true},
		{n: 5, engine: "badger"},
		{n: 5, engine: "bbolt"},
	} {
		if b.sample || *damages > 0 {
			t.Run(b.String(), func(t *testing.T) { newDecay(t, b).play() })
		}
	}
}

// decay is a cluster whose disks are damaged.
type decay struct {
	*darkening
	next    int            // the next number that is added
	present []int          // numbers whose addition was acknowledged, and not their removal
	removed map[int]bool   // numbers whose removal was acknowledged
	hits    bounds         // of the counter that grows
	balance bounds         // of the other one
	found   map[string]int // how often the damage had which effect
}

// bounds are those of a sum: an update that was not acknowledged may have been made.
type bounds struct{ least, most int }

// add records an update that may have been made, or was acknowledged.
func (b *bounds) add(n int, acked bool) {
	switch {
	case acked:
		b.least, b.most = b.least+n, b.most+n
	case n > 0:
		b.most += n
	default:
		b.least += n
	}
}

func newDecay(t *testing.T, b blackout) *decay {
	c := &decay{
		darkening: &darkening{blackout: b, members: &members{t: t},
			random: rand.New(rand.NewPCG(uint64(b.n), 4))},
		removed: map[int]bool{}, found: map[string]int{},
	}
	c.specs = c.addresses(b.n)
	dir := t.TempDir()
	for i := range c.specs {
		s := &c.specs[i]
		s.Member, s.MinMembers = fmt.Sprint("member-", i), b.n
		s.Data, s.Engine = filepath.Join(dir, fmt.Sprint(i)), b.engine
	}
	return c
}

func (c *decay) play() {
	c.begin()
	c.flush()
	for range max(*damages, 3) {
		c.round()
		if c.t.Failed() {
			return
		}
	}
	c.t.Logf("%d rounds: %v; %d numbers, %d removed, hits %v, balance %v", max(*damages, 3),
		c.found, len(c.present), len(c.removed), c.hits, c.balance)
}

// round kills, damages, restarts and compares.
func (c *decay) round() {
	for range 10 {
		c.update()
	}
	var killed []int
	late := c.interrupted(func() {
		time.Sleep(time.Duration(c.random.IntN(20)) * time.Millisecond)
		if c.random.IntN(2) == 0 {
			killed = c.random.Perm(c.n)
			c.killAll()
		} else {
			killed = []int{c.random.IntN(c.n)}
			c.kill(killed[0])
		}
	})
	what := c.damage(c.specs[killed[0]].Data)
	for _, i := range killed {
		c.relaunch(i)
	}
	c.tell()
	for _, i := range killed {
		c.await(i)
	}
	c.flush()
	c.compare(fmt.Sprintf("after %d were killed, and %s (%d late updates)", len(killed), what,
		late))
}

// update makes one update of each kind at a majority, at any member.
func (c *decay) update() {
	c.t.Helper()
	at := func() int { return c.random.IntN(c.n) }
	majority := distributeddata.Majority
	c.do(at(), command{Do: "add", Value: c.next, Level: majority})
	c.present = append(c.present, c.next)
	c.next++
	c.do(at(), command{Do: "hit", Value: 1, Level: majority})
	c.hits.add(1, true)
	n := c.random.IntN(7) - 3
	c.do(at(), command{Do: "book", Value: n, Level: majority})
	c.balance.add(n, true)
	if i := c.random.IntN(len(c.present)); c.random.IntN(2) == 0 {
		c.do(at(), command{Do: "remove", Value: c.present[i], Level: majority})
		c.removed[c.present[i]] = true
		c.present = slices.Delete(c.present, i, i+1)
	}
}

// interrupted begins updates at every member, calls f, and returns how many of them were not
// acknowledged.
func (c *decay) interrupted(f func()) int {
	type result struct {
		do  command
		err error
	}
	all := make(chan result, 3*c.n)
	var wg sync.WaitGroup
	live := slices.Clone(c.live)
	for i, p := range live {
		for _, do := range []command{{Do: "hit", Value: 1}, {Do: "book", Value: -1 + 2*(i%2)}} {
			do.Level, do.Within = distributeddata.Majority, attempt
			wg.Go(func() {
				a, err := p.call(do)
				if err == nil && a.Err != "" {
					err = fmt.Errorf("%s", a.Err)
				}
				all <- result{do, err}
			})
		}
	}
	f()
	wg.Wait()
	close(all)
	late := 0
	for r := range all {
		sum := &c.hits
		if r.do.Do == "book" {
			sum = &c.balance
		}
		if sum.add(r.do.Value, r.err == nil); r.err != nil {
			late++
		}
	}
	return late
}

// damage flips a bit of some file in dir, or cuts its end off, and returns what it did.
func (c *decay) damage(dir string) string {
	c.t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		c.t.Fatalf("%v: no file to damage in %s", err, dir)
	}
	path := files[c.random.IntN(len(files))]
	raw, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	used := len(strings.TrimRight(string(raw), "\x00"))
	if used == 0 {
		return filepath.Base(path) + " was empty"
	}
	if at := c.random.IntN(used); c.random.IntN(4) == 0 {
		raw = raw[:at]
	} else {
		raw[at] ^= 1 << c.random.IntN(8)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return filepath.Base(path) + " was damaged"
}

// relaunch starts a killed member, with an empty directory if the store refuses the one it has.
func (c *decay) relaunch(i int) {
	c.t.Helper()
	p := launch(c.t, c.specs[i], (*exec.Cmd).Start)
	c.t.Cleanup(func() { c.end(i, p) })
	select {
	case c.list[i] = <-p.here:
		c.live[i] = p
		c.found["opened"]++
		return
	case <-p.Gone():
	case <-time.After(patience):
		c.t.Fatalf("member %d does not listen", i)
	}
	said := p.Stderr()
	if !slices.ContainsFunc([]error{store.ErrCorrupt, store.ErrForeign, store.ErrWrongKey},
		func(err error) bool { return strings.Contains(said, err.Error()) }) {
		c.t.Fatalf("member %d is gone: %s", i, said)
	}
	c.found["refused"]++
	if err := os.RemoveAll(c.specs[i].Data); err != nil {
		c.t.Fatal(err)
	}
	c.launch(i)
}

// compare waits until all members hold the same, and checks it.
func (c *decay) compare(what string) {
	c.t.Helper()
	d := c.alike()
	for _, n := range c.present {
		if !slices.Contains(d.Numbers, n) {
			c.t.Errorf("%s: number %d is lost", what, n)
		}
	}
	for _, n := range d.Numbers {
		if c.removed[n] {
			c.t.Errorf("%s: number %d is back", what, n)
		}
	}
	if n := int(d.Hits); n < c.hits.least || n > c.hits.most {
		c.t.Errorf("%s: %d hits, not %v", what, n, c.hits)
	}
	if n := int(d.Balance); n < c.balance.least || n > c.balance.most {
		c.t.Errorf("%s: balance %d, not %v", what, n, c.balance)
	}
}
