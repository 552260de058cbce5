package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/sim"
	"github.com/stretchr/testify/require"
)

func TestScale_AtRestAMemberSaysNoMoreInALargeCluster(t *testing.T) {
	const members = 40
	sim.Run(t, sim.Seeds{First: 1, Count: 1}, func(s *sim.World) {
		w := newWorld(s, members)
		w.round = time.Second
		said := map[int][]time.Duration{}
		w.Observe(func(from, _ int, _ any) { said[from] = append(said[from], w.Elapsed()) })
		w.start(members)
		w.Until(60 * time.Second)
		clear(said)
		w.Until(100 * time.Second)
		for i := range members {
			if n := len(said[i]); n > 200 {
				w.Fail("member %d says %d hellos in 100 seconds", i, n)
			}
			last := 60 * time.Second
			for _, at := range said[i] {
				if at-last > 15*time.Second {
					w.Fail("member %d says nothing for %v, and then much", i, at-last)
				}
				last = at
			}
		}
	})
}

func TestScale_ANewMemberCostsEachMemberAFewHellos(t *testing.T) {
	const members = 40
	sim.Run(t, sim.Seeds{First: 1, Count: 3}, func(s *sim.World) {
		w := newWorld(s, members+1)
		w.round = time.Second
		said := 0
		w.Observe(func(_, _ int, _ any) { said++ })
		w.start(members)
		w.Until(60 * time.Second)
		said = 0
		w.Until(10 * time.Second)
		rest := said
		said = 0
		w.places[members].start()
		w.Until(10 * time.Second)
		if !w.oneView() {
			w.Fail("not one view: %s", w.told())
		}
		if n := (said - rest) / members; n > 20 {
			w.Fail("a new member costs each member %d hellos", n)
		}
	})
}

// All others drop a member that still lists them.
func TestScale_RemovedMemberSoonLearnsOfIt(t *testing.T) {
	const members = 40
	sim.Run(t, sim.Seeds{First: 1, Count: 3}, func(s *sim.World) {
		w := newWorld(s, members)
		w.start(members)
		w.Until(60 * time.Second)
		expelled := w.places[7].incarnation
		for _, p := range w.places {
			if p.i != 7 {
				p.incarnation.blind[7] = w.Elapsed() + time.Second
			}
		}
		w.Eventually(10*time.Second, "the end of the incarnation of the expelled one", func() bool {
			return w.places[7].incarnation != expelled
		})
	})
}

func TestScale_AMemberThatLostManyAsksTenASecond(t *testing.T) {
	f := newFixture(t)
	ids := []string{"a"}
	for i := range 200 {
		ids = append(ids, fmt.Sprintf("m%03d", i))
	}
	f.step(at(ids...)).pass(time.Second).step(at("a"))
	asked := 0
	for range 600 {
		f.pass(100 * time.Millisecond).step(wake{})
		asked += len(f.sent())
	}
	require.InDelta(t, 600, asked, 200, "in a minute")
}
