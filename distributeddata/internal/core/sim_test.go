package core

import (
	"bytes"
	"container/heap"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
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

type sim struct {
	swarm
	seed    uint64
	r       *rand.Rand
	rules   rules
	now     time.Time
	queue   timeline
	seq     int
	slots   []*slot
	cut     map[[2]int]bool
	history history
	nextRep causal.Replica
	nextID  uint64
	acked   []causal.Dot
	waiting map[uint64]causal.Dot    // majority writes under way
	reads   map[uint64]causal.Vector // under way, with what they must show
	shown   causal.Vector            // by linearizable reads that have ended
	trace   []byte
	hash    []byte
	failure string
	calm    bool
	total   Stats
	done    int // operations that ended well
}

// rules are ways to break the protocol, for the test of the tests.
type rules struct {
	step func(c *Core, ev Event) Event // changes or swallows an input
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

type moment struct {
	at  time.Time
	seq int
	do  func()
}

type timeline []moment

func (t timeline) Len() int { return len(t) }
func (t timeline) Less(i, j int) bool {
	if !t[i].at.Equal(t[j].at) {
		return t[i].at.Before(t[j].at)
	}
	return t[i].seq < t[j].seq
}
func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(x any)   { *t = append(*t, x.(moment)) }
func (t *timeline) Pop() any {
	old := *t
	m := old[len(old)-1]
	*t = old[:len(old)-1]
	return m
}

func (s *sim) after(d time.Duration, do func()) {
	s.seq++
	heap.Push(&s.queue, moment{s.now.Add(d), s.seq, do})
}

func (s *sim) note(format string, args ...any) {
	line := fmt.Sprintf("%v "+format+"\n", append([]any{s.now.Sub(epoch)}, args...)...)
	h := sha256.Sum256(append(s.hash, line...))
	s.hash = h[:]
	if s.trace != nil {
		s.trace = append(s.trace, line...)
	}
}

func (s *sim) fail(format string, args ...any) {
	if s.failure == "" {
		s.failure = fmt.Sprintf("seed %d at %v: ", s.seed, s.now.Sub(epoch)) + fmt.Sprintf(format, args...)
	}
}

var epoch = time.Unix(1_700_000_000, 0)

const members = 5

func newSim(seed uint64, ru rules) *sim {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	s := &sim{
		swarm: pick(r), seed: seed, r: r, rules: ru, now: epoch, cut: map[[2]int]bool{}, history: history{},
		waiting: map[uint64]causal.Dot{}, reads: map[uint64]causal.Vector{},
	}
	for i := range members {
		s.slots = append(s.slots, &slot{i: i})
	}
	return s
}

func (s *sim) config(sl *slot) Config {
	return Config{
		Member: sl.id(), Started: uint64(s.now.UnixMilli()), NewReplica: func() causal.Replica {
			s.nextRep++
			return s.nextRep*7919%104729 + 1 // ids not in the order of starts
		},
		MinMembers: members, BeatInterval: time.Second, BeatPeers: 2, Grace: 200 * time.Millisecond,
		Patience: 2 * time.Second, WindowCount: s.window, WindowBytes: 1 << 20, LogBytes: s.logBytes,
		PushBytes: s.pushBytes, PartBytes: s.partBytes,
	}
}

func (s *sim) start(sl *slot) {
	sl.life++
	sl.core = New(s.config(sl))
	sl.wake, sl.last = time.Time{}, causal.Vector{}
	s.note("start %s %v", sl.id(), sl.core.Replica())
	for _, o := range s.slots {
		s.after(time.Duration(s.r.IntN(1500))*time.Millisecond, func() { s.tellView(o) })
	}
	s.tellView(sl)
}

func (s *sim) kill(sl *slot) {
	s.note("kill %s", sl.id())
	s.total = addStats(s.total, sl.core.Stats())
	sl.core = nil
	for _, o := range s.slots {
		s.after(time.Duration(s.r.IntN(3000))*time.Millisecond, func() { s.tellView(o) })
	}
	s.after(time.Duration(500+s.r.IntN(5000))*time.Millisecond, func() { s.start(sl) })
}

// tellView gives a member the members that are up, now and then without one of them.
func (s *sim) tellView(sl *slot) {
	if sl.core == nil {
		return
	}
	var others []Member
	for _, o := range s.slots {
		if o != sl && o.core != nil && (s.calm || s.r.IntN(12) > 0) {
			others = append(others, Member{ID: o.id(), Address: fmt.Sprint("slot ", o.i)})
		}
	}
	s.step(sl, View{Others: others})
}

func (s *sim) step(sl *slot, ev Event) {
	if sl.core == nil || s.failure != "" {
		return
	}
	if s.rules.step != nil {
		if ev = s.rules.step(sl.core, ev); ev == nil {
			return
		}
	}
	effects := sl.core.Step(s.now, ev)
	for _, e := range effects {
		s.effect(sl, e)
	}
	s.check(sl)
	if at := sl.core.NextWake(); sl.wake.IsZero() || at.Before(sl.wake) || !sl.wake.After(s.now) {
		s.arm(sl, at)
	}
}

func (s *sim) arm(sl *slot, at time.Time) {
	sl.wake = at
	c := sl.core
	soon := max(0, at.Sub(s.now))
	if soon == 0 { // pushes wait for whatever stands before the wake
		soon = time.Duration(s.r.Int64N(int64(20 * time.Millisecond)))
	}
	s.after(soon, func() {
		if sl.core == c && sl.wake.Equal(at) {
			s.step(sl, Wake{})
		}
	})
}

func (s *sim) effect(sl *slot, e Effect) {
	switch e := e.(type) {
	case Send:
		s.note("%s -> %s %v %d", sl.id(), e.Member, e.Manifest, len(e.Payload))
		s.send(sl, e)
	case Done:
		s.ended(sl, e)
	case Changed:
		s.note("%s changed %v", sl.id(), e.Keys)
	case Reborn:
		s.fail("%s reborn although nothing was restored", sl.id())
	}
}

func (s *sim) ended(sl *slot, e Done) {
	s.note("%s done %d %v %v", sl.id(), e.ID, e.Err, e.Short)
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
				s.fail("%s: linearizable read shows something else than its vector", sl.id())
			}
		}
		if !want.Leq(shows) {
			s.fail("%s: read misses what was acknowledged, or shown by a linearizable read, before it began: %v lacks %v", sl.id(), shows, want)
		}
	}
	delete(s.waiting, e.ID)
	delete(s.reads, e.ID)
}

func (s *sim) send(from *slot, e Send) {
	me := Receive{Member: from.id(), From: from.core.Replica(), To: e.To, Manifest: e.Manifest, Payload: e.Payload}
	copies := 1
	if !s.calm && s.r.Float64() < s.dup {
		copies = 2
	}
	for range copies {
		if !s.calm && s.r.Float64() < s.loss {
			continue
		}
		delay := s.delay
		if !s.calm || s.jitter < 100*time.Millisecond {
			delay += time.Duration(s.r.Int64N(int64(s.jitter)))
		}
		s.after(delay, func() {
			for _, to := range s.slots {
				if to.id() == e.Member && to.core != nil && !s.cut[[2]int{from.i, to.i}] {
					s.step(to, me)
				}
			}
		})
	}
}

// check asserts the invariants of the protocol at one replica: the vector is a causal cut and claims
// nothing that did not happen, and the state is what the specification says of the vector.
func (s *sim) check(sl *slot) {
	c := sl.core
	if sl.last.Equal(c.Seen()) && len(c.touched) == 0 {
		return
	}
	sl.last = c.Seen()
	for d := range c.Seen().All() {
		r := s.history[d]
		if r == nil {
			s.fail("%s claims event %v, which never was", sl.id(), d)
			return
		}
		if !r.deps.Leq(c.Seen()) {
			s.fail("%s has seen %v but not what it followed: %v", sl.id(), d, r.deps)
		}
	}
	got, err := shown(c.Keys())
	if err != nil {
		s.fail("%s: %v", sl.id(), err)
	}
	if want := s.history.spec(c.Seen()); got != want {
		s.fail("%s at %v shows\n%sspecification says\n%s", sl.id(), c.Seen(), got, want)
	}
}

// update makes a random update at a random replica, sometimes a burst of them.
func (s *sim) update() {
	sl := s.slots[s.r.IntN(len(s.slots))]
	for range 1 + s.r.IntN(3)*s.r.IntN(2) {
		s.updateAt(sl)
	}
}

func (s *sim) updateAt(sl *slot) {
	if sl.core == nil {
		return
	}
	s.nextID++
	id := s.nextID
	ops := s.randomOps()
	level := Level{Kind: Majority}
	switch s.r.IntN(4) {
	case 0:
		level = Level{}
	case 1:
		level = Level{Kind: All}
	}
	c := sl.core
	r := &record{deps: c.Seen(), ops: ops}
	before := c.Seen().Get(c.Replica())
	s.waiting[id] = causal.Dot{}
	ev := Update{ID: id, Level: level, Deadline: s.now.Add(8 * time.Second), Modify: func(t *Txn) error {
		r.dot, r.stamp = t.Dot(), t.Stamp()
		if s.history[r.dot] != nil {
			s.fail("%s: event %v used twice", sl.id(), r.dot)
		}
		s.history[r.dot] = r // known before the state is checked
		s.waiting[id] = r.dot
		if level.Kind == Local {
			delete(s.waiting, id)
		}
		return perform(t, ops)
	}}
	s.note("%s update %d %v", sl.id(), id, ops)
	s.step(sl, ev)
	if sl.core == c && c.Seen().Get(c.Replica()) == before {
		delete(s.history, r.dot) // changed nothing, made no event
		delete(s.waiting, id)
	}
}

// read starts a majority read, which must see every write acknowledged by now.
func (s *sim) read() {
	sl := s.slots[s.r.IntN(len(s.slots))]
	if sl.core == nil {
		return
	}
	s.nextID++
	s.reads[s.nextID] = causal.MakeVector(s.acked...)
	kind := Majority
	if s.r.IntN(2) == 0 {
		kind = Linear
		s.reads[s.nextID] = s.reads[s.nextID].Join(s.shown)
	}
	s.step(sl, Read{ID: s.nextID, Level: Level{Kind: kind}, Deadline: s.now.Add(8 * time.Second)})
}

func (s *sim) ready() (n int) {
	for _, sl := range s.slots {
		if sl.core != nil && sl.core.Ready() {
			n++
		}
	}
	return n
}

// overlap asserts that any majority of ready replicas knows every acknowledged write.
func (s *sim) overlap() {
	for _, d := range s.acked {
		lack := 0
		for _, sl := range s.slots {
			if sl.core != nil && sl.core.Ready() && !sl.core.Seen().Covers(d) {
				lack++
			}
		}
		if lack >= members/2+1 {
			s.fail("acknowledged write %v is unknown to %d of %d ready replicas", d, lack, s.ready())
		}
	}
}

// run plays the history and returns what is wrong with it, or "".
func (s *sim) run() string {
	for _, sl := range s.slots {
		s.start(sl)
	}
	s.until(8 * time.Second)
	span := 30 * time.Second
	for range s.updates {
		s.after(time.Duration(s.r.Int64N(int64(span))), s.update)
	}
	for range 30 {
		s.after(time.Duration(s.r.Int64N(int64(span))), s.read)
	}
	for range s.cuts {
		s.after(time.Duration(s.r.Int64N(int64(span))), s.cutSome)
	}
	for range s.kills {
		s.after(time.Duration(s.r.Int64N(int64(span))), func() {
			// A minority fails before it has been refilled: more than that nobody promises.
			if sl := s.slots[s.r.IntN(members)]; sl.core != nil && s.ready() > members/2+1 && sl.core.Ready() {
				s.kill(sl)
			}
		})
	}
	for t := time.Duration(0); t < span+10*time.Second; t += time.Second {
		s.after(t, s.overlap)
	}
	s.until(span + 10*time.Second)
	if s.failure == "" {
		s.heal()
	}
	return s.failure
}

func (s *sim) until(d time.Duration) {
	end := s.now.Add(d)
	for s.failure == "" && len(s.queue) > 0 && !s.queue[0].at.After(end) {
		m := heap.Pop(&s.queue).(moment)
		s.now = m.at
		m.do()
	}
	s.now = end
}

// cutSome cuts links, one way or both, for a while.
func (s *sim) cutSome() {
	a := s.r.IntN(members)
	oneWay := s.r.IntN(3) == 0
	var links [][2]int
	for b := range members {
		if b != a && s.r.IntN(2) == 0 {
			links = append(links, [2]int{a, b})
			if !oneWay {
				links = append(links, [2]int{b, a})
			}
		}
	}
	s.note("cut %v", links)
	for _, l := range links {
		s.cut[l] = true
	}
	s.after(time.Duration(s.r.IntN(15000))*time.Millisecond, func() {
		for _, l := range links {
			delete(s.cut, l)
		}
	})
}

// heal ends every fault and asserts that all become equal, to the byte, with nothing acknowledged lost.
func (s *sim) heal() {
	s.calm = true
	clear(s.cut)
	s.until(7 * time.Second) // whoever is down comes up
	for _, sl := range s.slots {
		s.tellView(sl)
	}
	for range 30 {
		s.until(time.Second)
		if s.failure != "" || s.equal() {
			break
		}
	}
	if s.failure != "" {
		return
	}
	if !s.equal() {
		s.fail("not equal 30 s after all faults ended: %v", s.vectors())
		return
	}
	for _, sl := range s.slots {
		s.total = addStats(s.total, sl.core.Stats())
		if !sl.core.Ready() {
			s.fail("%s never became ready", sl.id())
		}
		for _, d := range s.acked {
			if !sl.core.Seen().Covers(d) {
				s.fail("acknowledged write %v is lost at %s", d, sl.id())
			}
		}
		if a, b := stateBytes(s.slots[0].core), stateBytes(sl.core); !bytes.Equal(a, b) {
			s.fail("equal vectors, other bytes at %s", sl.id())
		}
	}
}

func (s *sim) equal() bool {
	for _, sl := range s.slots {
		if sl.core == nil || !sl.core.Seen().Equal(s.slots[0].core.Seen()) || !sl.core.Ready() {
			return false
		}
	}
	return true
}

func (s *sim) vectors() (out []string) {
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
