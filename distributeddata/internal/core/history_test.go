package core

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/sim"
)

var seeds = sim.Flags(defaultSeeds)

// TestHistories plays seeded histories. After every step the state of the replica that took it must
// match the specification for its vector, and reads must show what was acknowledged before. When
// the faults end, all replicas must become byte-equal, with nothing acknowledged lost. Steps that
// panic must lose nothing, and every call must be answered once.
func TestHistories(t *testing.T) {
	total := histories(t, *seeds, func(w *sim.World) *play {
		s := newPlay(w)
		s.run()
		return s
	}, "acknowledged writes", "acknowledged writes that changed nothing", "Bulks", "Compared",
		"Deltas", "Waiting", "incarnations continued", "leaves handed over", "forged bases refused",
		"panics", "incarnations beside the next", "kills during a refill", "snapshots restored",
		"Bases", "Awaiting", "updates between steps")
	require.Zero(t, total["Malformed"], "messages of our own that were refused")
}

// TestHistories_EqualSeedsEqualTraces checks that a core depends only on its inputs.
func TestHistories_EqualSeedsEqualTraces(t *testing.T) {
	s := sim.Seeds{First: 1, Count: defaultSeeds / 5, Twice: true}
	sim.Run(t, s, func(w *sim.World) { newPlay(w).run() })
	sim.Run(t, s, func(w *sim.World) { newFluxPlay(w).runFlux() })
}

// histories plays seeded histories, and returns how often what happened in them. Each of must
// happens in them, if they are many.
func histories(t *testing.T, s sim.Seeds, play func(*sim.World) *play,
	must ...string) map[string]int {
	var mu sync.Mutex
	total := map[string]int{}
	sim.Run(t, s, func(w *sim.World) {
		one := play(w).happened
		mu.Lock()
		defer mu.Unlock()
		for what, n := range one {
			total[what] += n
		}
	})
	t.Log(total)
	for _, what := range must {
		if seeds.Count >= 50 && total[what] == 0 {
			t.Errorf("the histories lack %s", what)
		}
	}
	return total
}

// TestSavedHistories replays histories that failed once, and some that show a planted bug.
func TestSavedHistories(t *testing.T) {
	sim.Replay(t, sim.Folder, func(w *sim.World) { newPlay(w).run() })
}

// TestSavedHistories_OnDisks does the same for members with disks.
func TestSavedHistories_OnDisks(t *testing.T) {
	sim.Replay(t, "testdata/disks", func(w *sim.World) { newDiskPlay(w).run() })
}

// TestSavedHistories_OfMembers does the same for histories in which members come and go.
func TestSavedHistories_OfMembers(t *testing.T) {
	sim.Replay(t, "testdata/members", func(w *sim.World) { newFluxPlay(w).runFlux() })
}

// TestSavedHistories_OfRecords does the same for members that are kept as a record.
func TestSavedHistories_OfRecords(t *testing.T) {
	sim.Replay(t, "testdata/records", func(w *sim.World) { newFluxPlayOn(w, &simStore{}).runFlux() })
}

// joins makes a replica join a state, as that of an answer.
func joins(c *Core, s history.State) { c.note(c.history.Join(s), c.Seen(), &c.bases) }
