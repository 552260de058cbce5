package core

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
	"github.com/concord-go/concord/testkit/sim"
)

// A seeded history: five replicas, their real codec, and a network that loses, doubles, delays,
// reorders and cuts; members are killed and come back as other incarnations; views disagree. Each seed
// also picks how bad all that is, and how small the logs, windows and parts are. A safety phase with
// all faults is followed by a phase without, in which everything must become equal.

// swarm is what a seed picks.
type swarm struct {
	loss, dup     float64
	delay, jitter time.Duration
	updates       int
	logBytes      int
	partBytes     int
	window        int
	pushBytes     int
	kills, cuts   int
	keys          int
}

func pick(r *rand.Rand) swarm {
	s := swarm{
		delay: time.Duration(1+r.IntN(30)) * time.Millisecond, jitter: time.Duration(1+r.IntN(300)) * time.Millisecond,
		updates: 40 + r.IntN(100), logBytes: 64 << 20, partBytes: 192 << 10, window: 64, pushBytes: 1 << 20,
		kills: r.IntN(5), cuts: r.IntN(8), keys: 1 + r.IntN(3),
	}
	if r.IntN(4) > 0 {
		s.loss, s.dup = r.Float64()*0.4, r.Float64()*0.2
	}
	if r.IntN(2) == 0 {
		s.logBytes = r.IntN(4000)
	}
	if r.IntN(2) == 0 {
		s.partBytes = 40 + r.IntN(400)
	}
	if r.IntN(2) == 0 {
		s.window = r.IntN(4)
	}
	if r.IntN(4) == 0 {
		s.pushBytes = r.IntN(600)
	}
	return s
}

// play is one history.
type play struct {
	swarm
	w       *sim.World
	slots   []*slot
	history history
	nextRep causal.Replica
	nextID  uint64
	acked   []causal.Dot
	waiting map[uint64]causal.Dot    // majority writes under way
	reads   map[uint64]causal.Vector // under way, with what they must show
	shown   causal.Vector            // by linearizable reads that have ended
	total   Stats
	done    int // operations that ended well
}

// slot is a place where one member after another runs.
type slot struct {
	i    int
	life int
	core *Core // nil while down
	wake time.Time
	last causal.Vector // at the last check
}

func (s *slot) id() string { return fmt.Sprintf("m%d.%d", s.i, s.life) }

const members = 5

func newPlay(w *sim.World) *play {
	s := &play{
		swarm: pick(w.Rand()), w: w, history: history{}, waiting: map[uint64]causal.Dot{}, reads: map[uint64]causal.Vector{},
	}
	w.Faults = sim.Faults{Loss: s.loss, Duplicate: s.dup, Delay: s.delay, Jitter: s.jitter}
	for i := range members {
		s.slots = append(s.slots, &slot{i: i})
	}
	return s
}

func (s *play) config(sl *slot) Config {
	return Config{
		Started: uint64(s.w.Now().UnixMilli()), NewReplica: func() causal.Replica {
			s.nextRep++
			return s.nextRep*7919%104729 + 1 // ids not in the order of starts
		},
		MinMembers: members, BeatInterval: time.Second, BeatPeers: 2, Grace: 200 * time.Millisecond,
		Patience: 2 * time.Second, WindowCount: s.window, WindowBytes: 1 << 20, LogBytes: s.logBytes,
		PushBytes: s.pushBytes, PartBytes: s.partBytes,
	}
}

func (s *play) start(sl *slot) {
	sl.life++
	sl.core = New(s.config(sl))
	sl.wake, sl.last = time.Time{}, causal.Vector{}
	s.w.Note("start %s %v", sl.id(), sl.core.Replica())
	for _, o := range s.slots {
		s.w.After(time.Duration(s.w.Rand().IntN(1500))*time.Millisecond, func() { s.tellView(o) })
	}
	s.tellView(sl)
}

func (s *play) kill(sl *slot) {
	s.w.Note("kill %s", sl.id())
	s.total = addStats(s.total, sl.core.Stats())
	sl.core = nil
	for _, o := range s.slots {
		s.w.After(time.Duration(s.w.Rand().IntN(3000))*time.Millisecond, func() { s.tellView(o) })
	}
	s.w.After(time.Duration(500+s.w.Rand().IntN(5000))*time.Millisecond, func() { s.start(sl) })
}

// tellView gives a member the members that are up, now and then without one of them.
func (s *play) tellView(sl *slot) {
	if sl.core == nil {
		return
	}
	var others []Member
	for _, o := range s.slots {
		if o != sl && o.core != nil && (s.w.IsCalm() || s.w.Rand().IntN(12) > 0) {
			others = append(others, Member{ID: o.id(), Address: fmt.Sprint("slot ", o.i)})
		}
	}
	s.step(sl, View{Others: others})
}

func (s *play) step(sl *slot, ev Event) {
	if sl.core == nil || s.w.Failed() {
		return
	}
	effects := sl.core.Step(s.w.Now(), ev)
	for _, e := range effects {
		s.effect(sl, e)
	}
	s.check(sl)
	if at := sl.core.NextWake(); sl.wake.IsZero() || at.Before(sl.wake) || !sl.wake.After(s.w.Now()) {
		s.arm(sl, at)
	}
}

func (s *play) arm(sl *slot, at time.Time) {
	sl.wake = at
	c := sl.core
	soon := max(0, at.Sub(s.w.Now()))
	if soon == 0 { // pushes wait for whatever stands before the wake
		soon = time.Duration(s.w.Rand().Int64N(int64(20 * time.Millisecond)))
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
		s.w.Note("%s -> %s %v %d", sl.id(), e.Member, e.Manifest, len(e.Payload))
		s.send(sl, e)
	case Done:
		s.ended(sl, e)
	case Changed:
		s.w.Note("%s changed %v", sl.id(), e.Keys)
	case Reborn:
		s.w.Fail("%s reborn although nothing was restored", sl.id())
	}
}

func (s *play) ended(sl *slot, e Done) {
	s.w.Note("%s done %d %v %v", sl.id(), e.ID, e.Err, e.Short)
	// An update that changed nothing made no event to be lost.
	if d, ok := s.waiting[e.ID]; ok && e.Err == nil && e.Short == nil && sl.core.Seen().Covers(d) {
		s.acked = append(s.acked, d)
		s.done++
	}
	if want, ok := s.reads[e.ID]; ok && e.Err == nil && e.Short == nil {
		s.done++
		shows := sl.core.Seen()
		if e.State != nil { // linearizable: no later read may miss any of it
			shows = e.State.Seen
			s.shown = s.shown.Join(shows)
			if got, _ := shownState(e.State); got != s.history.spec(shows) {
				s.w.Fail("%s: linearizable read shows something else than its vector", sl.id())
			}
		}
		if !want.Leq(shows) {
			s.w.Fail("%s: read misses what was acknowledged, or shown by a linearizable read, before it began: %v lacks %v", sl.id(), shows, want)
		}
	}
	delete(s.waiting, e.ID)
	delete(s.reads, e.ID)
}

func (s *play) send(from *slot, e Send) {
	mail := Receive{Member: from.id(), From: from.core.Replica(), To: e.To, Manifest: e.Manifest, Payload: e.Payload}
	for _, to := range s.slots {
		if to.id() == e.Member {
			s.w.Send(from.i, to.i, func() {
				if to.id() == e.Member { // still the one it was for
					s.step(to, mail)
				}
			})
		}
	}
}

// check asserts the invariants of the protocol at one replica: the vector is a causal cut and claims
// nothing that did not happen, and the state is what the specification says of the vector.
func (s *play) check(sl *slot) {
	c := sl.core
	if sl.last.Equal(c.Seen()) && len(c.touched) == 0 {
		return
	}
	sl.last = c.Seen()
	for d := range c.Seen().All() {
		r := s.history[d]
		if r == nil {
			s.w.Fail("%s claims event %v, which never was", sl.id(), d)
			return
		}
		if !r.deps.Leq(c.Seen()) {
			s.w.Fail("%s has seen %v but not what it followed: %v", sl.id(), d, r.deps)
		}
	}
	got, err := shown(c.Keys())
	if err != nil {
		s.w.Fail("%s: %v", sl.id(), err)
	}
	if want := s.history.spec(c.Seen()); got != want {
		s.w.Fail("%s at %v shows\n%sspecification says\n%s", sl.id(), c.Seen(), got, want)
	}
}

// update makes a random update at a random replica, sometimes a burst of them.
func (s *play) update(r *rand.Rand) {
	sl := s.slots[r.IntN(len(s.slots))]
	for range 1 + r.IntN(3)*r.IntN(2) {
		s.updateAt(sl, r)
	}
}

func (s *play) updateAt(sl *slot, r *rand.Rand) {
	if sl.core == nil {
		return
	}
	s.nextID++
	id := s.nextID
	ops := s.randomOps(r)
	level := Level{Kind: Majority}
	switch r.IntN(4) {
	case 0:
		level = Level{}
	case 1:
		level = Level{Kind: All}
	}
	c := sl.core
	rec := &record{deps: c.Seen(), ops: ops}
	before := c.Seen().Get(c.Replica())
	s.waiting[id] = causal.Dot{}
	ev := Update{ID: id, Level: level, Deadline: s.w.Now().Add(8 * time.Second), Modify: func(t *Txn) error {
		rec.dot, rec.stamp = t.Dot(), t.Stamp()
		if s.history[rec.dot] != nil {
			s.w.Fail("%s: event %v used twice", sl.id(), rec.dot)
		}
		s.history[rec.dot] = rec // known before the state is checked
		s.waiting[id] = rec.dot
		if level.Kind == Local {
			delete(s.waiting, id)
		}
		return perform(t, ops)
	}}
	s.w.Note("%s update %d %v", sl.id(), id, ops)
	s.step(sl, ev)
	if sl.core == c && c.Seen().Get(c.Replica()) == before {
		delete(s.history, rec.dot) // changed nothing, made no event
		delete(s.waiting, id)
	}
}

// read starts a majority read, which must see every write acknowledged by now.
func (s *play) read(r *rand.Rand) {
	sl := s.slots[r.IntN(len(s.slots))]
	if sl.core == nil {
		return
	}
	s.nextID++
	s.reads[s.nextID] = causal.MakeVector(s.acked...)
	kind := Majority
	if r.IntN(2) == 0 {
		kind = Linear
		s.reads[s.nextID] = s.reads[s.nextID].Join(s.shown)
	}
	s.step(sl, Read{ID: s.nextID, Level: Level{Kind: kind}, Deadline: s.w.Now().Add(8 * time.Second)})
}

func (s *play) ready() (n int) {
	for _, sl := range s.slots {
		if sl.core != nil && sl.core.Ready() {
			n++
		}
	}
	return n
}

// overlap asserts that any majority of ready replicas knows every acknowledged write.
func (s *play) overlap() {
	for _, d := range s.acked {
		lack := 0
		for _, sl := range s.slots {
			if sl.core != nil && sl.core.Ready() && !sl.core.Seen().Covers(d) {
				lack++
			}
		}
		if lack >= members/2+1 {
			s.w.Fail("acknowledged write %v is unknown to %d of %d ready replicas", d, lack, s.ready())
		}
	}
}

// run plays the history.
func (s *play) run() {
	const warm, span = 8 * time.Second, 30 * time.Second
	act := func(times int, what string, do func(r *rand.Rand)) {
		for range times {
			s.w.Act(warm+s.w.Moment(span), what, do)
		}
	}
	act(s.updates, "update", s.update)
	act(30, "read", s.read)
	act(s.cuts, "cut", s.cutSome)
	act(s.kills, "kill", func(r *rand.Rand) {
		// A minority fails before it has been refilled: more than that nobody promises.
		if sl := s.slots[r.IntN(members)]; sl.core != nil && s.ready() > members/2+1 && sl.core.Ready() {
			s.kill(sl)
		}
	})
	for t := warm; t < warm+span+10*time.Second; t += time.Second {
		s.w.After(t, s.overlap)
	}
	for _, sl := range s.slots {
		s.start(sl)
	}
	s.w.Until(warm + span + 10*time.Second)
	if !s.w.Failed() {
		s.heal()
	}
}

// cutSome cuts links, one way or both, for a while.
func (s *play) cutSome(r *rand.Rand) {
	a := r.IntN(members)
	oneWay := r.IntN(3) == 0
	var links [][2]int
	for b := range members {
		if b != a && r.IntN(2) == 0 {
			links = append(links, [2]int{a, b})
			if !oneWay {
				links = append(links, [2]int{b, a})
			}
		}
	}
	s.w.Note("cut %v", links)
	for _, l := range links {
		s.w.Cut(l[0], l[1])
	}
	s.w.After(time.Duration(r.IntN(15000))*time.Millisecond, func() {
		for _, l := range links {
			s.w.Mend(l[0], l[1])
		}
	})
}

// heal ends every fault and asserts that all become equal, to the byte, with nothing acknowledged lost.
func (s *play) heal() {
	s.w.Calm()
	s.w.Until(7 * time.Second) // whoever is down comes up
	for _, sl := range s.slots {
		s.tellView(sl)
	}
	for range 30 {
		s.w.Until(time.Second)
		if s.w.Failed() || s.equal() {
			break
		}
	}
	if s.w.Failed() {
		return
	}
	if !s.equal() {
		s.w.Fail("not equal 30 s after all faults ended: %v", s.vectors())
		return
	}
	for _, sl := range s.slots {
		s.total = addStats(s.total, sl.core.Stats())
		if !sl.core.Ready() {
			s.w.Fail("%s never became ready", sl.id())
		}
		for _, d := range s.acked {
			if !sl.core.Seen().Covers(d) {
				s.w.Fail("acknowledged write %v is lost at %s", d, sl.id())
			}
		}
		if a, b := stateBytes(s.slots[0].core), stateBytes(sl.core); !bytes.Equal(a, b) {
			s.w.Fail("equal vectors, other bytes at %s", sl.id())
		}
	}
}

func (s *play) equal() bool {
	for _, sl := range s.slots {
		if sl.core == nil || !sl.core.Seen().Equal(s.slots[0].core.Seen()) || !sl.core.Ready() {
			return false
		}
	}
	return true
}

func (s *play) vectors() (out []string) {
	for _, sl := range s.slots {
		if sl.core != nil {
			out = append(out, sl.id()+" "+sl.core.Seen().String())
		}
	}
	return out
}

// stateBytes is the canonical encoding of what a replica holds. Marks are bookkeeping that each
// replica drops when it may, so they stay out.
func stateBytes(c *Core) []byte {
	var b pmap.Builder[causal.Store]
	for key, store := range c.Keys().All() {
		for path := range store.Marks() {
			store = store.WithoutMark(path)
		}
		if !store.Empty() {
			b.Add([]byte(key), store)
		}
	}
	return encodeSnapshot(snapshot{c.Seen(), b.Map()})
}

func addStats(a, b Stats) Stats {
	a.Events += b.Events
	a.Applied += b.Applied
	a.Deltas += b.Deltas
	a.Bulks += b.Bulks
	a.Waiting += b.Waiting
	a.WindowDrops += b.WindowDrops
	a.Cut += b.Cut
	a.Malformed += b.Malformed
	return a
}
