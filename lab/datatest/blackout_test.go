package datatest_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata"
)

var blackouts = flag.Int("blackouts", 0,
	"how often all members of each cluster are killed at once while clients write; 0: a few times, of two clusters")

// blackout is a cluster whose members have disks, and are killed all at once.
type blackout struct {
	n      int
	engine string // of the stores
	slow   bool   // their disks stall now and then
	sample bool   // also played without -blackouts
}

func (b blackout) String() string {
	if b.slow {
		return fmt.Sprintf("%d members, %s, slow disks", b.n, b.engine)
	}
	return fmt.Sprintf("%d members, %s", b.n, b.engine)
}

// TestReal_Blackout kills all members of a cluster at once with SIGKILL, again and again, while
// clients write and read at a majority. The members restart in any order. A single member serves
// what its disk holds and is not ready. Once a majority is back, every acknowledged write is read,
// even before the others have come. Some of those come late, and some only in a later round.
func TestReal_Blackout(t *testing.T) {
	for _, b := range []blackout{
		{n: 3, engine: "badger", sample: true},
		{n: 3, engine: "bbolt", sample: true},
		{n: 3, engine: "bbolt", slow: true, sample: true},
		{n: 5, engine: "badger"},
		{n: 5, engine: "bbolt"},
		{n: 5, engine: "badger", slow: true},
	} {
		if b.sample || *blackouts > 0 {
			t.Run(b.String(), b.play)
		}
	}
}

func (b blackout) play(t *testing.T) {
	c := &darkening{blackout: b, members: &members{t: t},
		random: rand.New(rand.NewPCG(uint64(b.n), 3))}
	c.specs = c.addresses(b.n)
	dir := t.TempDir()
	for i := range c.specs {
		s := &c.specs[i]
		s.Member, s.MinMembers = fmt.Sprint("member-", i), b.n
		s.Data, s.Engine, s.Slow = filepath.Join(dir, fmt.Sprint(i)), b.engine, b.slow
	}
	c.begin()
	c.flush()
	c.load = startLoad(t, c.running())
	times := *blackouts
	if times == 0 {
		times = 3
	}
	for range times {
		c.round()
		if t.Failed() {
			return
		}
	}
	c.load.end()
	for i, p := range c.live {
		if p == nil {
			c.restart(i)
		}
	}
	c.load.whole(c.running())
	if c.shown == 0 {
		t.Error("no member that was alone has shown anything")
	}
	t.Logf("all killed %d times, a majority was back within %v, %d rounds without some member to the end; %v",
		times, c.longest.Round(time.Millisecond), c.without, c.load)
}

// darkening is a cluster whose members are all killed at once.
type darkening struct {
	blackout
	*members
	load    *load
	random  *rand.Rand
	longest time.Duration // time until a majority was ready
	without int           // number of rounds that ended without some member
	shown   int           // how often a single member had writes of a client
}

// flush waits until every disk records that its member has counted: a member that is killed before
// that starts like one without a disk.
func (c *darkening) flush() {
	c.t.Helper()
	c.eventually(func() string {
		for i, p := range c.live {
			a, err := p.call(command{Do: "flush", Within: patience})
			if err != nil {
				c.t.Fatalf("member %d: %v", i, err)
			}
			if a.Err != "" {
				return fmt.Sprintf("member %d: %s", i, a.Err)
			}
		}
		return ""
	})
}

// round kills all members under load and restarts them.
func (c *darkening) round() {
	c.t.Helper()
	before := c.load.written()
	c.eventually(func() string { return c.load.since(before) }) // every client has made progress
	time.Sleep(time.Duration(c.random.IntN(300)) * time.Millisecond)
	c.killAll()

	order := c.random.Perm(c.n)
	majority := c.n/2 + 1
	began := time.Now()
	c.launch(order[0])
	c.tell()
	c.alone(order[0])
	for _, i := range order[1:majority] {
		c.launch(i)
	}
	c.tell()
	for _, i := range order[:majority] {
		c.await(i)
	}
	c.longest = max(c.longest, time.Since(began))
	c.load.whole(c.running())
	c.load.use(c.running())
	for _, i := range order[majority:] {
		if c.random.IntN(4) == 0 {
			c.without++ // with its data from before this round, or an earlier one
			continue
		}
		c.restart(i)
	}
	c.load.use(c.running())
}

// alone checks a member that runs before all others: it shows what its disk holds, and does not
// count. It may lack what others have acknowledged.
func (c *darkening) alone(i int) {
	c.t.Helper()
	c.eventually(func() string {
		a, err := c.live[i].call(command{Do: "status", Within: patience})
		switch {
		case err != nil:
			c.t.Fatalf("member %d: %v", i, err)
		case a.Status.Durable == nil || a.Status.Durable.Disk != "working":
			return fmt.Sprintf("the disk of member %d does not work: %+v", i, a.Status.Durable)
		case a.Status.Ready || a.Status.NotReady == "":
			c.t.Fatalf("member %d is alone and says that it is ready (%q)", i, a.Status.NotReady)
		}
		return ""
	})
	for k, acked := range c.load.written() {
		if acked == 0 {
			continue
		}
		a, err := c.live[i].call(command{Do: "read", Key: set(k, 0), Level: distributeddata.Local,
			Within: patience})
		if err != nil || a.Err != "" {
			c.t.Fatalf("member %d, alone: %v %s", i, err, a.Err)
		}
		if len(a.Values) > 0 {
			c.shown++
		}
	}
}
