package core

import (
	"flag"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/sim"
	"github.com/concord-go/concord/internal/wire"
)

// Small worlds are explored systematically rather than at random: two or three members, one write,
// one read and one or two changes of the counted members, in every order, with every possible
// exchange between two members in between. A step does what a step of a script does, and all other
// messages are lost. After each step the promise is checked: a majority read that ends shows every
// write that was acknowledged at a majority when it began.
//
// Histories are identified by the state that they lead to, shorter ones first. By default all
// states reachable in a few steps are explored; -small says how many more.

// budget limits the events of a small world other than exchanges.
type budget struct {
	write, read, crash, start, join, forget, leave int
}

// small is a script whose steps are chosen one at a time.
type small struct {
	*script
	w      *sim.World
	left   budget
	fresh  []string // names of new members
	pushed bool     // the previous step was a write or a push
}

func newSmall(t *testing.T, w *sim.World, names string, b budget) *small {
	s := &small{w: w, left: b, script: scriptIn(newLabOf(t, 1))}
	for i := range b.join {
		s.fresh = append(s.fresh, string(rune('x'+i)))
	}
	s.prime(names)
	return s
}

// prime begins with members that count each other.
func (s *small) prime(names string) {
	var members []quorum.Member
	s.order = strings.Split(names, "")
	for _, n := range s.order {
		s.start(n)
		members = append(members, quorum.Member{Name: n, Rank: quorum.In,
			Inc: quorum.Incarnation{Number: 1, Replica: s.cores[n].Replica()}})
	}
	for _, n := range s.order {
		c := s.cores[n]
		c.members.Memory = quorum.Remember(members)
		c.members.inc = quorum.Incarnation{Number: 1, Replica: c.Replica()}
		c.members.counted, c.members.filled, c.members.ready = true, true, true
		s.see(n, names)
	}
	s.deliver(all)
	s.tick(time.Second)
}

// run takes steps until none is possible or chosen, or the resulting state has been explored.
func (s *small) run() {
	for !s.w.Failed() && s.mayFail() && !s.w.Visited(s.state) {
		steps := s.steps()
		i := s.w.Number("step", 0, len(steps))
		if i == 0 {
			return
		}
		step := steps[i-1]
		s.w.Note("%s", step)
		words := append(strings.Fields(step), "", "")
		s.do(words[0], words[1], words[2])
		if s.pushed = words[0] == "write" || words[0] == "push"; !s.pushed {
			s.take(all)
		}
		if what := s.misses(); what != "" {
			s.w.Fail("%s", what)
		}
	}
}

// mayFail reports whether a read can still miss a write.
func (s *small) mayFail() bool {
	return s.left.read+len(s.reads) > 0 && s.left.write+len(s.writes) > 0
}

// do carries out a step of a script, and counts the limited events.
func (s *small) do(verb, x, y string) {
	switch verb {
	case "write":
		s.left.write--
	case "read":
		s.left.read--
	case "crash":
		s.left.crash--
	case "forget":
		s.left.forget--
	case "leave":
		s.left.leave--
	case "start":
		s.left.start--
	case "join":
		s.left.join--
		s.fresh = s.fresh[1:]
		verb = "start"
	}
	s.script.do(verb, x, y)
}

// steps lists the possible steps.
func (s *small) steps() (steps []string) {
	can := func(ok bool, format string, args ...any) {
		if ok {
			steps = append(steps, fmt.Sprintf(format, args...))
		}
	}
	acked := len(s.acked()) > 0
	for _, x := range s.order {
		c := s.cores[x]
		if c == nil {
			can(s.left.start > 0, "start %s", x)
			continue
		}
		idle := c.members.counts(&c.disk) && c.waits.Live() == 0
		// Any other member would behave the same.
		can(idle && s.left.write > 0 && x == s.order[0], "write %s", x)
		can(idle && s.left.read > 0 && acked, "read %s", x)
		can(s.left.crash > 0 && s.mayCrash(x), "crash %s", x)
		can(idle && s.left.leave > 0, "leave %s", x)
		for _, r := range c.members.Members() {
			can(idle && s.left.forget > 0 && r.Name != x && r.Rank < quorum.Going, "forget %s %s",
				x, r.Name)
		}
		for _, y := range s.order {
			if d := s.cores[y]; d != nil && x != y {
				differ := c.members.Digest() != d.members.Digest()
				can(s.pushed && s.pushes(x, y), "push %s %s", x, y)
				can(differ, "tell %s %s", x, y)
				can(!differ && x < y, "ask %s %s", x, y)
				can(x < y, "meet %s %s", x, y)
			}
		}
	}
	can(s.left.join > 0, "join %s", append(s.fresh, "")[0])
	return steps
}

// pushes reports whether the latest push from one member to another is in flight.
func (s *small) pushes(x, y string) bool {
	return slices.ContainsFunc(s.box, func(m mail) bool {
		return m.from == x && m.to == y && m.send.Manifest == wire.ReplicatorPush
	})
}

// mayCrash enforces the assumption that a majority of the counted members runs and is refilled.
func (s *small) mayCrash(name string) bool {
	if !s.cores[name].members.counts(&s.cores[name].disk) {
		return true
	}
	var m quorum.Memory
	for _, c := range s.cores {
		if c != nil {
			m = m.Merge(c.members.Memory)
		}
	}
	voters := 0
	for n, c := range s.cores {
		if n != name && c != nil && c.members.counts(&c.disk) && m.Of(n).Rank == quorum.In &&
			m.Of(n).Inc == c.members.inc {
			voters++
		}
	}
	return voters >= quorum.MajorityOf(m.Counted())
}

// state returns a hash of everything that the rest of the history depends on. Times are left out: a
// step takes longer than all of them except that of Forget, which waits for it itself.
func (s *small) state() any {
	var h maphash.Hash
	h.SetSeed(stateSeed)
	add := func(x ...any) { maphash.WriteComparable(&h, fmt.Sprint(x...)) }
	add(s.left, s.pushed, s.acked(), s.reads)
	if s.pushed {
		for _, m := range s.box {
			add(m.from, m.to, m.send.Manifest)
		}
	}
	for _, n := range s.order {
		if c := s.cores[n]; c != nil {
			c.describe(add)
		} else {
			add(n)
		}
	}
	return h.Sum64()
}

var stateSeed = maphash.MakeSeed()

// describe adds everything that a replica's behaviour depends on, except times.
func (c *Core) describe(add func(...any)) {
	r := &c.members
	add(c.Replica(), r.Digest(), r.inc, r.entering, r.counted, r.filled, r.resigned, r.leaving,
		c.members.withdrawn,
		c.members.ready, digest(c.Seen()), digest(c.probes.promise.accepted))
	for o := range c.waits.All() {
		add(o.Level().Kind, o.Asked(), o.Live(), o.Kept())
		switch t := o.Task.(type) {
		case *read:
			t.describe(add)
			add(t.accepted)
		case *removal:
			t.describe(add)
			add(t.victim, digest(t.want), t.brought)
		case *cover:
			add(digest(t.want))
		case *confirm:
			add(t.digest, t.accepted, t.refused, digest(t.above))
		case *leave:
			add(digest(t.want), t.forget)
		}
	}
	for _, p := range c.peers {
		add(p.ID, p.replica, p.ready, p.leaving, p.parts, p.vouches, p.counted, digest(p.sure),
			p.resigned)
		if !c.members.ready {
			add(p.gave, p.answered, p.refilled, p.entering)
		}
	}
}

func (s *survey) describe(add func(...any)) {
	add(s.fixed, digest(s.target))
	for _, a := range s.answers {
		add(a.replica, digest(a.seen))
	}
}

var smallWorlds = flag.Int("small", defaultSmall, "histories of each small world; 0: all there are")

func TestSmallWorlds(t *testing.T) {
	for _, c := range []struct {
		name    string
		members string
		budget
	}{
		{"restart", "abc", budget{write: 1, read: 1, crash: 1, start: 1}},
		{"removal", "abc", budget{write: 1, read: 1, forget: 1}},
		{"two removals", "abc", budget{write: 1, read: 1, forget: 2}},
		{"leave", "abc", budget{write: 1, read: 1, leave: 1}},
		{"two leaves", "abc", budget{write: 1, read: 1, leave: 2}},
		{"join", "ab", budget{write: 1, read: 1, join: 1}},
		{"two joins", "ab", budget{write: 1, read: 1, join: 2}},
		{"join and removal", "ab", budget{write: 1, read: 1, join: 1, forget: 1}},
		{"restart and join", "abc", budget{write: 1, read: 1, crash: 1, start: 1, join: 1}},
		{"removal and join", "abc", budget{write: 1, read: 1, forget: 1, join: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := sim.Explore(t, sim.Bounds{Histories: *smallWorlds,
				Progress: *smallWorlds > 100_000}, func(w *sim.World) {
				newSmall(t, w, c.members, c.budget).run()
			})
			if *smallWorlds > 0 {
				require.Greater(t, e.States, min(300, *smallWorlds/3))
			}
		})
	}
}
