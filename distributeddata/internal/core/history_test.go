package core

import (
	"sync"
	"testing"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/sim"
)

var seeds = sim.Flags(defaultSeeds)

// TestHistories plays seeded histories. After every step the state of the replica that took it must
// match the specification for its vector, and reads must show what was acknowledged before. When
// the faults end, all replicas must become byte-equal, with nothing acknowledged lost. Steps that
// panic must lose nothing, and every call must be answered once. Equal seeds give equal traces.
func TestHistories(t *testing.T) {
	var mu sync.Mutex
	var total Stats
	var acked, idle, done, begun, lives, leaves, misled, broken, haunted, early, thawed int
	directly := 0
	s := *seeds
	s.Twice = s.Count <= 1000 // checks that a core depends only on its inputs; not in a campaign
	sim.Run(t, s, func(w *sim.World) {
		s := newPlay(w)
		s.run()
		mu.Lock()
		defer mu.Unlock()
		total, acked, idle, done, begun = addStats(total, s.total), acked+s.acks, idle+s.idle,
			done+s.done, begun+s.begun
		lives, leaves, misled, broken = lives+s.lives, leaves+s.leaves, misled+s.misled,
			broken+s.broken
		haunted, early, thawed = haunted+s.haunted, early+s.early, thawed+s.thawed
		directly += s.direct
	})
	t.Logf("%d acknowledged writes, %d of them no-ops, %d operations, of which %d ended well at a majority, %d lives that went on, %d members that left, %d forged bases refused, %d steps that panicked, %d lives that ran on beside the next, %d kills during a refill, %d restored snapshots, %d updates between steps, %+v",
		acked, idle, begun, done, lives, leaves, misled, broken, haunted, early, thawed, directly,
		total)
	if seeds.Count >= 50 && (acked == 0 || idle == 0 || total.Bulks == 0 || total.Compared == 0 ||
		total.Deltas == 0 || total.Waiting == 0 || lives == 0 || leaves == 0 || misled == 0 ||
		broken == 0 || haunted == 0 || early == 0 || thawed == 0 || total.Bases == 0 ||
		total.Awaiting == 0 || directly == 0) {
		t.Error("the histories do not exercise what they should")
	}
	if total.Malformed > 0 {
		t.Errorf("%d messages of our own were refused", total.Malformed)
	}
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
