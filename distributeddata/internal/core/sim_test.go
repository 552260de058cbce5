package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/outbox"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/sim"
)

// A seeded history: five replicas, their real codec, and a network that loses, duplicates, delays,
// reorders and cuts. Members are killed and come back as other incarnations; views disagree. Each
// seed also picks the severity of all that, and how small the logs, windows and parts are. A safety
// phase with all faults is followed by a phase without, in which all replicas must become equal.

// The updates that a replica has, and the happened-before relation, are read from what it shows:
// see chronicle.

// bounds are the sizes that a seed picks.
type bounds struct {
	logBytes  int
	partBytes int
	window    int
	pushBytes int
	compare   int
	past      int    // replicas that ran before the history begins
	forge     bool   // some parts of bases are changed in flight
	letters   string // the kinds of keys that it has
	sameIDs   bool   // a member that comes back has its previous id
	badClocks bool   // each incarnation of a member has a different clock
	disks     bool   // members have disks
	behind    bool   // and acknowledge before the disk does
	batchRows int    // size of a batch
}

// swarm picks faults and bounds: each seed has some of them, and rarely all.
func swarm(w *sim.World) bounds {
	b := bounds{logBytes: 64 << 20, partBytes: 64 << 10, window: 64, pushBytes: 1 << 20}
	w.Delay = w.Span("delay", time.Millisecond, 30*time.Millisecond)
	w.Jitter = w.Span("jitter", 0, 300*time.Millisecond)
	if w.Chance("lossy", 3./4) {
		w.Loss, w.Duplicate = w.Fraction("loss", 0.4), w.Fraction("double", 0.2)
	}
	if w.Chance("late", 1./4) {
		w.Late, w.Lateness = 0.05, 5*time.Second
	}
	if w.Chance("short-log", 1./2) {
		b.logBytes = w.Number("log-bytes", 0, 4000)
	}
	if w.Chance("small-parts", 1./2) {
		b.partBytes = w.Number("part-bytes", 40, 440)
	}
	if w.Chance("small-window", 1./2) {
		b.window = w.Number("window", 0, 3)
	}
	if w.Chance("small-pushes", 1./4) {
		b.pushBytes = w.Number("push-bytes", 0, 600)
	}
	if w.Chance("old", 1./2) {
		b.past = w.Number("past", bases.Few, 80)
		b.forge = w.Chance("forge", 1./3)
	}
	b.sameIDs, b.badClocks = w.Chance("same-ids", 1./3), w.Chance("bad-clocks", 1./3)
	b.compare = 1
	if w.Chance("compare-seldom", 1./2) {
		b.compare = 100
	}
	return b
}

// play is one history.
type play struct {
	bounds
	w       *sim.World
	slots   []*slot
	ghosts  []*slot // earlier incarnations of members that still run
	did     *chronicle
	events  map[causal.Dot]*eventOf
	nextRep causal.Replica
	nextID  uint64
	acked   names                    // effects of acknowledged writes, and what those follow
	locals  map[uint64]*deed         // pending local writes of members with disks
	waiting map[uint64]attempt       // pending writes at a level
	reads   map[uint64]names         // pending reads, with what they must show
	shown   names                    // by linearizable reads that have ended
	linear  []names                  // what each of these showed
	flux    *flux                    // set if members come and go
	thawed  bool                     // a machine snapshot has been restored
	doubted map[causal.Replica]names // restored replicas, with what their snapshots show

	happened map[string]int // how often
}

// attempt is a write at a level: the update, if it changes anything, and what its replica showed.
type attempt struct {
	deed *deed
	knew names
}

// slot is a place at which one member after another runs.
type slot struct {
	i           int
	incarnation int
	name        string
	member      string // the name under which quorums count it
	core        *Core  // nil while down
	coming      bool   // it will start
	wake        time.Time
	skew        time.Duration // error of its clock
	past        *Core         // the core of the ended incarnation, between two incarnations
	leaving     uint64        // the pending drain
	handed      names         // what it showed when that began
	away        time.Duration // how long it will be gone after that
	frozen      *image        // a snapshot of its machine
	restored    bool          // it was restored, and no member has noticed
	lacks       names         // what it showed before the restore

	shows names                 // the updates that are readable in it
	texts map[string]*shownText // what it shows, by key
	open  []*deed               // updates of the open events
	mine  names                 // what its incarnations did: not lost unless it is killed
	last  causal.Vector         // vector at the last check
	has   names                 // the updates of the events covered by last
	told  map[string]string     // what a subscriber to every key was last sent

	disk   simDisk
	fuse   int             // its step panics after that many places; 0: never
	broke  bool            // the last step panicked
	calls  map[uint64]bool // pending calls
	misled bool            // it has been sent a forged base
}

func (sl *slot) id() string { return sl.name }

const players = 5

func newPlay(w *sim.World) *play {
	s := &play{
		bounds: swarm(w), w: w, did: newChronicle(), events: map[causal.Dot]*eventOf{},
		locals: map[uint64]*deed{}, waiting: map[uint64]attempt{}, reads: map[uint64]names{},
		doubted: map[causal.Replica]names{}, happened: map[string]int{},
	}
	for verb, do := range map[string]func(sim.Args){
		"update": s.update, "read": s.read, "kill": s.kill, "again": s.again,
		"leave": s.leave, "cut": s.cut,
		"break": s.breakOff, "ghost": s.ghost, "haunt": s.haunt, "freeze": s.freeze, "thaw": s.thaw,
		"blackout": s.blackout, "fill": s.fill, "fail": s.fail, "rot": s.rot, "tail": s.tail,
		"join": s.join, "view": s.look, "forget": s.doForget,
	} {
		w.Can(verb, do)
	}
	w.Observe(s.honest)
	for i := range players {
		s.slots = append(s.slots, &slot{i: i, member: fmt.Sprintf("slot %d", i)})
	}
	return s
}

// running returns the slots, and the earlier incarnations that still run.
func (s *play) running() []*slot { return append(slices.Clone(s.slots), s.ghosts...) }

// now returns the time according to the member's clock.
func (s *play) now(sl *slot) time.Time { return s.w.Now().Add(sl.skew) }

func (s *play) config(sl *slot) Config {
	return Config{
		Member: sl.member, Recorded: s.flux != nil && s.flux.store != nil,
		NewReplica: func() causal.Replica {
			s.nextRep++
			return s.nextRep*7919%104729 + 1 // ids are not in the order of starts
		},
		MinMembers: s.least(), ForgetAfter: s.forgetAfter(), BeatInterval: time.Second,
		BeatPeers: 2, Grace: 200 * time.Millisecond,
		Patience: 2 * time.Second, WindowCount: s.window, WindowBytes: 1 << 20,
		LogBytes:  s.logBytes,
		PushBytes: s.pushBytes, PartBytes: s.partBytes, CompareKeys: s.compare,
		Reach: sl.burn, Disk: s.diskConfig(),
	}
}

func (s *play) step(sl *slot, ev Event) {
	if sl.core == nil || s.w.Failed() {
		return
	}
	effects := s.attempt(sl, ev)
	s.readNames(sl)
	for _, e := range effects {
		s.effect(sl, e)
	}
	if r, ok := ev.(Receive); ok && sl.core.Stats().Malformed > 0 && !sl.misled {
		s.w.Fail("%s refuses a message of %s: %v", sl.id(), r.Member, r.Manifest)
	}
	s.check(sl)
	if at := sl.core.NextWake(); sl.wake.IsZero() || at.Before(sl.wake) ||
		!sl.wake.After(s.now(sl)) {
		s.arm(sl, at)
	}
}

func (s *play) arm(sl *slot, at time.Time) {
	sl.wake = at
	c := sl.core
	soon := max(0, at.Sub(s.now(sl)))
	if soon <= outbox.Pause { // pushes wait for any event before the wake
		soon += s.w.Span("push", 0, 20*time.Millisecond)
	}
	s.w.After(soon, func() {
		if sl.core == c && sl.wake.Equal(at) {
			s.step(sl, Wake{})
		}
	})
}

func (s *play) effect(sl *slot, e Effect) {
	switch e := e.(type) {
	case Send:
		s.send(sl, e)
	case LoadRecord, SwapRecord:
		s.flux.store.call(s, sl, e)
	case Commit:
		s.commit(sl, e)
	case DiskIs:
		s.w.Note("%s: disk %v", sl.id(), e.Phase)
	case Done:
		s.ended(sl, e)
	case Changed:
		s.w.Note("%s changed %v", sl.id(), e.Keys)
		s.tell(sl, e.Keys)
	case Diverged:
		if !s.thawed {
			s.w.Fail("%s finds that %s holds something else at the same vector", sl.id(), e.Member)
		}
	case DuplicateName:
		s.restart(sl)
	case Restored:
		sl.restored = false
		if !s.thawed {
			s.w.Fail("%s restored although nothing was restored", sl.id())
		}
	}
}

func (s *play) ended(sl *slot, e Done) {
	s.w.Note("%s done %d %v %v", sl.id(), e.ID, e.Err, e.Short)
	if e.ID != 0 && !sl.calls[e.ID] {
		s.w.Fail("%s answers call %d, for which nobody waits", sl.id(), e.ID)
	}
	delete(sl.calls, e.ID)
	if e.ID == sl.leaving && e.ID != 0 {
		core := sl.core
		s.w.After(0, func() { // once the step has been carried out
			if sl.core == core {
				s.left(sl, e.Short != nil || e.Interrupted || e.Err != nil)
			}
		})
	}
	well := e.Err == nil && e.Short == nil && !e.Interrupted && e.Store == nil
	if d := s.locals[e.ID]; d != nil && well {
		sl.disk.safe = sl.disk.safe.with(d.id)
	}
	delete(s.locals, e.ID)
	if a, ok := s.waiting[e.ID]; ok && well {
		s.acknowledged(sl, a)
	}
	if want, ok := s.reads[e.ID]; ok && well {
		s.answered(sl, e, want)
	}
	delete(s.waiting, e.ID)
	delete(s.reads, e.ID)
}

// acknowledged records a write that has succeeded. One that changed nothing cannot be lost, but
// what it observed must stay [R34].
func (s *play) acknowledged(sl *slot, a attempt) {
	s.happened["acknowledged writes"]++
	s.acked = s.acked.join(a.knew)
	switch {
	case a.deed == nil:
		s.happened["acknowledged writes that changed nothing"]++
	case !sl.shows.has(a.deed.id) && !s.thawed:
		s.w.Fail("%s does not show update %d, which it has acknowledged", sl.id(), a.deed.id)
	default:
		s.acked = s.acked.with(a.deed.id)
		s.flux.acknowledged(a.deed)
	}
}

// ordered asserts that the results of linearizable reads are states in one order.
func (s *play) ordered(sl *slot, shows names) {
	for _, o := range s.linear {
		if more, less := shows.without(o), o.without(shows); len(more) > 0 && len(less) > 0 {
			s.w.Fail("%s: of two linearizable reads one alone shows %v, and the other one %v",
				sl.id(), more, less)
		}
	}
	s.linear = append(s.linear, shows)
}

// answered asserts that an ended read shows what it must.
func (s *play) answered(sl *slot, e Done, want names) {
	s.happened["reads checked"]++
	shows := sl.shows
	if e.State != nil { // linearizable: no later read may miss any of it
		shows = s.namesIn(e.State.Keys, nil)
		s.shown = s.shown.join(shows)
		if !s.thawed {
			s.specified(sl, e.State.Keys, shows)
			s.ordered(sl, shows)
		}
		s.flux.answered(e.ID, shows)
	}
	if lost := want.without(shows); len(lost) > 0 && !s.thawed {
		s.w.Fail("%s: read misses what was acknowledged, or shown by a linearizable read, before it began: %v", sl.id(), lost)
	}
}
