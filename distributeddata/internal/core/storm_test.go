//go:build unix

package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
)

// Messages answer messages, but not forever: the traffic of a period is bounded by its heartbeats,
// even if two processes take themselves for one member.

// newStart returns members that start, and see each other within a second.
func newStart(members, least int) *fleet {
	f := emptyFleet()
	f.same, f.diary, f.minMembers = map[int]int{}, map[int][]diaryEntry{}, least
	for range members {
		f.start(f.core())
	}
	for i := range members {
		f.after(f.upTo(time.Second), func() { f.view(i) })
	}
	return f
}

// agreed reports whether all are ready and have the same memory.
func (f *fleet) agreed() bool {
	for _, c := range f.cores {
		if !c.members.ready || c.members.Digest() != f.cores[0].members.Digest() {
			return false
		}
	}
	return true
}

// twin starts another process under the name of a member, and also under its id unless apart.
func (f *fleet) twin(of int, apart bool) {
	c := f.core()
	c.runsAs(f.cores[of].cfg.Member, f.cores[of].cfg.MinMembers)
	f.join(c, of, apart)
}

func (f *fleet) join(c *Core, of int, apart bool) {
	if !apart {
		f.same[len(f.cores)] = f.id(of)
	}
	f.start(c)
	for i := range f.cores {
		f.view(i)
	}
}

// restore starts an earlier state of a member beside it: with its replica, under its id.
func (f *fleet) restore(of int, at time.Time) {
	cfg := f.cores[of].cfg
	fresh, first := cfg.NewReplica, f.first[of]
	cfg.NewReplica = func() causal.Replica {
		if r := first; r != 0 {
			first = 0
			return r
		}
		return fresh()
	}
	c, now := New(cfg), f.now
	for _, e := range f.diary[of] {
		if e.at.After(at) {
			break
		}
		f.now = e.at // functions of updates read it
		c.Step(e.at, e.ev)
	}
	f.now = now
	f.join(c, of, false)
}

// TestTwins_SayNoMoreThanTheirHeartbeats plays two processes that take themselves for one member:
// one that was started twice, and one that was restored from a snapshot of its machine. They never
// agree, and must not exchange messages without time passing.
func TestTwins_SayNoMoreThanTheirHeartbeats(t *testing.T) {
	for name, play := range map[string]func(f *fleet){
		"two processes of one name": func(f *fleet) { f.twin(1, true) },
		"two processes of one id":   func(f *fleet) { f.twin(1, false) },
		"three processes of one id": func(f *fleet) { f.twin(1, false); f.twin(1, false) },
		"everybody twice": func(f *fleet) {
			f.twin(0, false)
			f.twin(1, false)
			f.twin(2, false)
		},
		"a snapshot of now":              func(f *fleet) { f.restore(1, f.now) },
		"a snapshot of before its write": func(f *fleet) { f.restore(1, epoch.Add(4*time.Second)) },
		"a snapshot of its start": func(f *fleet) {
			f.restore(1, epoch.Add(500*time.Millisecond))
		},
		"a snapshot restored twice": func(f *fleet) {
			f.restore(1, epoch.Add(4*time.Second))
			f.restore(1, epoch.Add(4*time.Second))
		},
		"a snapshot of everybody": func(f *fleet) {
			for i := range 3 {
				f.restore(i, epoch.Add(4*time.Second))
			}
		},
		"everybody twice, and none counts": func(f *fleet) {
			f.twin(0, false)
			f.twin(1, false)
			f.twin(2, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			least := 3
			if strings.HasSuffix(name, "none counts") {
				least = 0
			}
			f := newStart(3, least)
			f.pass(5 * time.Second)
			require.Equal(t, least > 0, f.agreed())
			for i := range f.cores {
				f.update(i, fmt.Sprint("own", i))
			}
			f.pass(time.Second)
			play(f)
			before := f.all()
			// Per second, ten times a heartbeat and a push to each of two.
			limit := 10 * 10 * len(f.cores) * (2 + 2)
			f.cut = func(int, int) bool { return f.all().messages-before.messages > 10*limit }
			for range 10 {
				for i := range f.cores {
					f.update(i, fmt.Sprint("own", i))
				}
				f.pass(time.Second)
			}
			spent := f.all().messages - before.messages
			t.Logf("%d messages, %v", spent, f.of)
			require.LessOrEqual(t, spent, limit)
		})
	}
}
