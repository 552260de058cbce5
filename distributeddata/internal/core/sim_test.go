package core

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/testkit/sim"
)

// A seeded history: five replicas, their real codec, and a network that loses, doubles, delays,
// reorders and cuts; members are killed and come back as other incarnations; views disagree. Each seed
// also picks how bad all that is, and how small the logs, windows and parts are. A safety phase with
// all faults is followed by a phase without, in which everything must become equal.

// bounds are sizes that a seed picks.
type bounds struct {
	logBytes  int
	partBytes int
	window    int
	pushBytes int
	compare   int
	past      int  // replicas that ran before the history begins
	forge     bool // some parts of bases are changed on their way
}

// swarm picks faults and bounds: each seed has some of them, and seldom all.
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
		b.past = w.Number("past", fewReplicas, 80)
		b.forge = w.Chance("forge", 1./3)
	}
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
	history history
	nextRep causal.Replica
	nextID  uint64
	acked   causal.Vector            // what acknowledged writes did and observed
	acks    int                      // acknowledged writes
	idle    int                      // of these, those that changed nothing
	waiting map[uint64]attempt       // writes at a level under way
	reads   map[uint64]causal.Vector // under way, with what they must show
	shown   causal.Vector            // by linearizable reads that have ended
	total   Stats
	misled  int   // forged bases refused
	lives   int   // that went on in another one
	leaves  int   // that were handed over
	begun   int   // operations
	flux    *flux // members come and go
	done    int   // those that ended well
	broken  int   // steps that panicked
}

// attempt is a write at a level: its event, if it makes one, and what it observed.
type attempt struct {
	dot      causal.Dot
	observed causal.Vector
}

// slot is a place where one member after another runs.
type slot struct {
	i       int
	life    int
	name    string
	member  string // the name under which quorums count it
	core    *Core  // nil while down
	coming  bool   // it will start
	wake    time.Time
	last    causal.Vector // at the last check
	says    string        // what the specification said then
	open    *record       // the event that its updates go into, until it has ended
	past    *Core         // of the life that has ended, between two lives
	leaving uint64        // the drain under way
	handed  causal.Vector // what it held then
	away    time.Duration // how long it will be gone then
	kept    causal.Vector // what its former lives did, which must not be lost unless it is killed

	fuse  int             // after so many places its step panics; 0: never
	calls map[uint64]bool // that wait

	misled bool              // it has been sent a forged base
	told   map[string]string // what a subscriber to every key was told last
}

func (sl *slot) id() string { return sl.name }

const members = 5

func newPlay(w *sim.World) *play {
	s := &play{
		bounds: swarm(w), w: w, history: history{}, waiting: map[uint64]attempt{}, reads: map[uint64]causal.Vector{},
	}
	w.Can("update", s.update)
	w.Can("read", s.read)
	w.Can("kill", s.kill)
	w.Can("again", s.again)
	w.Can("leave", s.leave)
	w.Can("cut", s.cut)
	w.Can("break", s.breakOff)
	w.Observe(s.honest)
	for i := range members {
		s.slots = append(s.slots, &slot{i: i, member: fmt.Sprintf("slot %d", i)})
	}
	return s
}

func (s *play) config(sl *slot) Config {
	return Config{
		Member: sl.member, NewReplica: func() causal.Replica {
			s.nextRep++
			return s.nextRep*7919%104729 + 1 // ids not in the order of starts
		},
		MinMembers: s.least(), ForgetAfter: s.forgetAfter(), BeatInterval: time.Second, BeatPeers: 2, Grace: 200 * time.Millisecond,
		Patience: 2 * time.Second, WindowCount: s.window, WindowBytes: 1 << 20, LogBytes: s.logBytes,
		PushBytes: s.pushBytes, PartBytes: s.partBytes, CompareKeys: s.compare,
		Reach: sl.burn,
	}
}

func (s *play) start(sl *slot) {
	sl.coming = false
	sl.life, sl.fuse = sl.life+1, 0
	sl.name = fmt.Sprintf("m%d.%d", sl.i, sl.life)
	if sl.past != nil {
		sl.core, sl.past = s.goOn(sl, sl.past), nil
	} else {
		sl.core, sl.misled = New(s.config(sl)), false
		s.age(sl)
	}
	sl.wake, sl.last, sl.says, sl.leaving = time.Time{}, causal.Vector{}, "", 0
	s.w.Note("start %s %v", sl.id(), sl.core.Replica())
	sl.told, sl.calls = map[string]string{}, map[uint64]bool{}
	for key := range sl.core.Keys().All() {
		s.tell(sl, []string{strings.Clone(key)})
	}
	for _, o := range s.slots {
		s.w.After(s.w.Span("view", 0, 1500*time.Millisecond), func() { s.tellView(o) })
	}
	s.tellView(sl)
}

// age gives a member that starts with the history the past of its cluster, of which nothing is left but its vector,
// and often a base of its own.
func (s *play) age(sl *slot) {
	if s.past == 0 || sl.life > 1 {
		return
	}
	var dots, some []causal.Dot
	share := s.w.Number("known", 0, 4)
	for i := range s.past {
		d := causal.Dot{Replica: causal.Replica(i+1) * 1_000_003, N: uint64(i%2 + 1)}
		if dots = append(dots, d); i%4 < share {
			some = append(some, d)
		}
		for n := range d.N {
			e := causal.Dot{Replica: d.Replica, N: n + 1}
			s.history[e] = &record{dot: e}
		}
	}
	sl.core.note(sl.core.join(State{Seen: causal.MakeVector(dots...)}))
	if len(some) > 0 {
		sl.core.useBase(causal.MakeVector(some...))
	}
}

// kill ends a member for a while: kill MEMBER for TIME. At most a minority fails before it has been refilled:
// more than that nobody promises.
func (s *play) kill(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || !s.mayFail(sl) {
		return
	}
	s.count(sl)
	s.forget(sl)
	sl.core, sl.kept = nil, causal.Vector{}
	for _, o := range s.slots {
		s.w.After(s.w.Span("view", 0, 3*time.Second), func() { s.tellView(o) })
	}
	s.comeBack(sl, a.Span(2))
}

// leave lets a member leave in order, and come back empty after a while: leave MEMBER for TIME. It fails nobody
// either. If it was not handed over in time, what it held goes along to its next life.
func (s *play) leave(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || sl.leaving != 0 {
		return
	}
	sl.leaving, sl.away, sl.handed = s.call(sl), a.Span(2), sl.core.Seen()
	s.step(sl, Drain{ID: sl.leaving, Leave: s.flux != nil, Deadline: s.w.Now().Add(5 * time.Second)})
}

// left ends a member that has waited to leave.
func (s *play) left(sl *slot, short bool) {
	away := sl.away
	sl.leaving = 0
	s.w.Note("%s leaves, short %t", sl.id(), short)
	if s.flux != nil && sl.core.own().rank != gone && !s.mayFail(sl) {
		sl.past, sl.core = sl.core, nil
		s.start(sl) // at once: too few would run without it
		return
	}
	if short {
		sl.past, sl.core = sl.core, nil
	} else {
		s.leaves++
		if s.flux == nil || sl.core.own().rank == gone {
			s.acked = s.acked.Join(sl.handed) // a majority of the rest has it
		}
		s.flux.gone(sl)
		s.count(sl)
		s.forget(sl)
		sl.core, sl.kept = nil, causal.Vector{}
	}
	for _, o := range s.slots {
		s.w.After(s.w.Span("view", 0, 3*time.Second), func() { s.tellView(o) })
	}
	s.comeBack(sl, away)
}

// again ends the life of a member, and begins its next one after a while: again MEMBER for TIME. It fails nobody:
// what the life held goes along.
func (s *play) again(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core == nil || s.flux != nil && !s.mayFail(sl) {
		return
	}
	sl.past, sl.core = sl.core, nil
	s.w.Note("%s ends its life", sl.id())
	for _, o := range s.slots {
		s.w.After(s.w.Span("view", 0, 3*time.Second), func() { s.tellView(o) })
	}
	sl.coming = true
	s.w.After(a.Span(2), func() { s.start(sl) })
}

// goOn begins the next life of a member, and asserts that it holds all that the former one did.
func (s *play) goOn(sl *slot, past *Core) *Core {
	s.lives++
	was, before := past.Replica(), past.Seen()
	own := before.Get(was)
	if sl.open != nil { // an event that shows must not vanish
		if whole := before.With(sl.open.dot); s.history.spec(whole) != s.history.spec(before) {
			own = sl.open.dot.N
		}
	}
	next := past.Again(s.config(sl))
	switch {
	case next.Ready():
		s.w.Fail("%s counts in quorums before it has been refilled", sl.id())
	case next.Replica() == was:
		s.w.Fail("%s goes on under the id of its former life", sl.id())
	case !before.Leq(next.Seen()) || next.Seen().Get(was) < own:
		s.w.Fail("%s lost what its former life held: %v of %v, with %d own events", sl.id(), next.Seen(), before, own)
	}
	sl.kept = sl.kept.Set(was, next.Seen().Get(was))
	sl.last, sl.core = next.Seen(), next
	s.forget(sl)
	return next
}

// tellView gives a member the members that are up, now and then without one of them.
func (s *play) tellView(sl *slot) {
	if sl.core == nil {
		return
	}
	var others []Member
	for _, o := range s.slots {
		if o != sl && o.core != nil && !s.unseen(sl) {
			others = append(others, Member{ID: o.id(), Address: o.member})
		}
	}
	s.step(sl, View{Others: others})
}

func (s *play) step(sl *slot, ev Event) {
	if sl.core == nil || s.w.Failed() {
		return
	}
	effects := s.attempt(sl, ev)
	if len(sl.core.open) == 0 {
		s.forget(sl)
	}
	for _, e := range effects {
		s.effect(sl, e)
	}
	if r, ok := ev.(Receive); ok && sl.core.Stats().Malformed > 0 && !sl.misled {
		s.w.Fail("%s refuses a message of %s: %v", sl.id(), r.Member, r.Manifest)
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
		soon = s.w.Span("push", 0, 20*time.Millisecond)
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
	case Done:
		s.ended(sl, e)
	case Changed:
		s.w.Note("%s changed %v", sl.id(), e.Keys)
		s.tell(sl, e.Keys)
	case Diverged:
		s.w.Fail("%s finds that %s holds something else at the same vector", sl.id(), e.Member)
	case Reborn:
		s.w.Fail("%s reborn although nothing was restored", sl.id())
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
				s.left(sl, e.Short != nil || e.Interrupted)
			}
		})
	}
	// An update that changed nothing made no event to be lost, but what it found must stay [R50].
	s.flux.ended(s, sl, e)
	if b, ok := s.waiting[e.ID]; ok && e.Err == nil && e.Short == nil && !e.Interrupted {
		s.acked = s.acked.Join(b.observed)
		if b.dot.N > 0 && sl.core.Seen().Covers(b.dot) {
			s.acked = s.acked.With(b.dot)
		} else {
			s.idle++
		}
		s.acks++
		s.done++
	}
	if want, ok := s.reads[e.ID]; ok && e.Err == nil && e.Short == nil && !e.Interrupted {
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
	mail := post{from: from.id(), to: e.Member, Receive: Receive{Member: from.id(), From: from.core.Replica(), To: e.To, Manifest: e.Manifest, Payload: e.Payload}}
	if s.forge && e.Manifest == wire.ReplicatorBase && s.w.Chance("forged", 1./3) {
		mail.Payload, mail.forged = forge(e.Payload)
	}
	for _, to := range s.slots {
		if to.id() == e.Member {
			s.w.Send(from.i, to.i, &mail, func() {
				if to.id() == mail.to { // still the one it was for
					to.misled = to.misled || mail.forged
					s.step(to, mail.Receive)
				}
			})
		}
	}
}

// tell tells the subscriber of a member what is under the keys.
func (s *play) tell(sl *slot, keys []string) {
	for _, key := range keys {
		var one Keys
		if h, ok := sl.core.Keys().Get(key); ok {
			one = one.put(key, h)
		}
		sl.told[key], _ = shown(one)
	}
}

// wasTold is all that the subscriber of a member was told last.
func (sl *slot) wasTold() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(sl.told)) {
		b.WriteString(sl.told[key])
	}
	return b.String()
}

// post is a message on its way.
type post struct {
	from, to string
	forged   bool
	Receive
}

// forge changes a number in a part of a base.
func forge(payload []byte) ([]byte, bool) {
	var m pb.BasePart
	if err := decode(payload, &m); err != nil || len(m.Numbers) == 0 {
		return payload, false
	}
	m.Numbers[len(m.Numbers)/2] += 5
	return encode(&m), true
}

func (m *post) String() string {
	return fmt.Sprintf("%s to %s: %v, %d bytes, %08x", m.from, m.to, m.Manifest, len(m.Payload), crc32.ChecksumIEEE(m.Payload))
}

// honest looks at every message: an acknowledgement speaks of what has been applied, and goes to the one it
// speaks of.
func (s *play) honest(from, _ int, msg any) {
	m := msg.(*post)
	if m.Manifest != wire.ReplicatorAck {
		return
	}
	var ack pb.Ack
	if err := decode(m.Payload, &ack); err != nil {
		s.w.Fail("%s sends an acknowledgement that nobody can read: %v", m.from, err)
	}
	if has := s.slots[from].core.Seen().Get(m.To); ack.N > has {
		s.w.Fail("%s acknowledges %d events of %v and has %d", m.from, ack.N, m.To, has)
	}
}

// check asserts the invariants of the protocol at one replica: the vector is a causal cut and claims
// nothing that did not happen, and the state is what the specification says of the vector.
func (s *play) check(sl *slot) {
	c := sl.core
	if s.w.Again() || sl.last.Equal(c.Seen()) && len(c.touched) == 0 {
		return
	}
	sl.last = c.Seen()
	if err := c.audit(); err != nil {
		s.w.Fail("%s: %v", sl.id(), err)
	}
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
	if told := sl.wasTold(); told != got {
		s.w.Fail("%s shows\n%sbut its subscribers were told\n%s", sl.id(), got, told)
	}
	if sl.says = s.spec(sl); got != sl.says {
		s.w.Fail("%s at %v shows\n%sspecification says\n%s", sl.id(), c.Seen(), got, sl.says)
	}
}

// spec is what the specification says of a replica, or has said of another one with the same vector.
func (s *play) spec(sl *slot) string {
	for _, o := range s.slots {
		if o != sl && o.core != nil && o.says != "" && o.last.Equal(sl.last) {
			return o.says
		}
	}
	return s.history.spec(sl.last)
}

// forget notes that no further update goes into the open event of a member; one that did not come to be
// never was.
func (s *play) forget(sl *slot) {
	if sl.open != nil && !sl.core.Seen().Covers(sl.open.dot) {
		delete(s.history, sl.open.dot)
	}
	sl.open = nil
}

// update carries out: update MEMBER LEVEL OP, OP … The level "quiet" is an update that nobody waits for, and
// "refused" one that fails after all else, and must leave no trace.
func (s *play) update(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	kind := slices.Index(levels[:], a.Word(1))
	if kind < 0 && a.Word(1) != quiet && a.Word(1) != refused {
		a.Fail("the second word must be one of " + strings.Join(levels[:], ", ") + ", " + quiet + ", " + refused)
		return
	}
	ops, err := parseOps(a.Words[min(2, len(a.Words)):])
	if err != nil {
		a.Fail(err.Error())
		return
	}
	if sl.core == nil {
		return
	}
	s.begun++
	if kind < 0 {
		s.quietly(sl, ops, a.Word(1) == refused)
		return
	}
	id, level := s.call(sl), Level{Kind: LevelKind(kind)}
	s.step(sl, Update{ID: id, Level: level, Deadline: s.w.Now().Add(8 * time.Second), Modify: func(t *Txn) error {
		if level.Kind != Local {
			ops = s.flux.mark(id, sl.i, ops)
		}
		s.record(sl, t, ops)
		if level.Kind != Local {
			s.waiting[id] = attempt{t.Dot(), t.Seen()}
		}
		return perform(t, ops)
	}})
	if sl.open != nil {
		s.w.Fail("%s: the event goes on after an update that somebody waited for", sl.id())
	}
	if b, ok := s.waiting[id]; ok && s.history[b.dot] == nil {
		s.waiting[id] = attempt{observed: b.observed} // the number is the next event's
	}
}

// quietly makes an update that nobody waits for.
func (s *play) quietly(sl *slot, ops []op, fail bool) {
	s.step(sl, Update{Modify: func(t *Txn) error {
		if err := perform(t, ops); err != nil || fail {
			return errors.Join(err, errRefused)
		}
		s.record(sl, t, ops)
		return nil
	}})
}

var errRefused = errors.New("refused")

// record puts the operations of an update into the history, before the state is checked.
func (s *play) record(sl *slot, t *Txn, ops []op) {
	if sl.open == nil {
		sl.open = &record{dot: t.Dot(), deps: sl.core.Seen()}
		if s.history[t.Dot()] != nil {
			s.w.Fail("%s: event %v used twice", sl.id(), t.Dot())
		}
		s.history[t.Dot()] = sl.open
	}
	sl.open.ops = append(sl.open.ops, ops...)
	for range ops {
		sl.open.clocks = append(sl.open.clocks, t.Stamp())
	}
}

// read carries out: read MEMBER LEVEL. It must see every write acknowledged by now.
func (s *play) read(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	level, ok := map[string]Level{"majority": {Kind: Majority}, "linear": {Kind: Linear}}[a.Word(1)]
	if !ok {
		a.Fail("the second word must be majority or linear")
	}
	if sl.core == nil {
		return
	}
	s.begun++
	id := s.call(sl)
	s.reads[id] = s.acked
	s.flux.began(id, sl.i, level.Kind == Linear)
	if level.Kind == Linear {
		s.reads[id] = s.reads[id].Join(s.shown)
	}
	s.step(sl, Read{ID: id, Level: level, Deadline: s.w.Now().Add(8 * time.Second)})
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
	for d := range s.acked.All() {
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

// The phases of a history: all come up, then acts and faults.
const warm, span = 8 * time.Second, 30 * time.Second

// makeUp makes up what happens.
func (s *play) makeUp(r *rand.Rand) {
	keys := 1 + r.IntN(3)
	at := func() time.Duration { return warm + s.w.Moment(span) }
	for range 40 + r.IntN(100) {
		t, member := at(), r.IntN(members)
		for range 1 + r.IntN(6)*r.IntN(2) { // sometimes a burst
			word := []string{"local", "all", "majority", "majority", "majority", quiet, quiet, refused}[r.IntN(8)]
			s.w.Act(t, "update", member, word, opsText(randomOps(r, keys)))
		}
	}
	for range 30 {
		s.w.Act(at(), "read", r.IntN(members), []string{"majority", "linear"}[r.IntN(2)])
	}
	for range r.IntN(8) {
		s.w.Act(at(), "cut", randomLinks(r), "for", time.Duration(r.IntN(15000))*time.Millisecond)
	}
	for range r.IntN(5) {
		t, member := at(), r.IntN(members)
		for range r.IntN(4) { // what nobody waits for may be under way
			s.w.Act(t, "update", member, quiet, opsText(randomOps(r, keys)))
		}
		s.w.Act(at(), "leave", r.IntN(members), "for", time.Duration(r.IntN(5000))*time.Millisecond)
		s.w.Act(t, "again", member, "for", time.Duration(r.IntN(5000))*time.Millisecond)
	}
	for range r.IntN(5) {
		s.w.Act(at(), "kill", r.IntN(members), "for", time.Duration(500+r.IntN(5000))*time.Millisecond)
	}
	for range r.IntN(5) {
		s.w.Act(at(), "break", r.IntN(members), "after", 1+r.IntN(1+r.IntN(100)))
	}
}

// run plays the history.
func (s *play) run() {
	s.makeUp(s.w.Rand())
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

// randomLinks picks links of one member, one way or both.
func randomLinks(r *rand.Rand) string {
	a := r.IntN(members)
	oneWay := r.IntN(3) == 0
	var links []string
	for b := range members {
		if b != a && r.IntN(2) == 0 {
			links = append(links, fmt.Sprintf("%d>%d", a, b))
			if !oneWay {
				links = append(links, fmt.Sprintf("%d>%d", b, a))
			}
		}
	}
	return strings.Join(links, " ")
}

// cut carries out: cut FROM>TO … for TIME.
func (s *play) cut(a sim.Args) {
	n := len(a.Words) - 2
	for _, word := range a.Words[:max(n, 0)] {
		from, to, _ := strings.Cut(word, ">")
		x, err1 := strconv.Atoi(from)
		y, err2 := strconv.Atoi(to)
		if errors.Join(err1, err2) != nil {
			a.Fail("links must be like 0>1")
			return
		}
		s.w.Cut(x, y)
		s.w.After(a.Span(n+1), func() { s.w.Mend(x, y) })
	}
}

// heal ends every fault and asserts that all become equal, to the byte, with nothing acknowledged lost.
func (s *play) heal() {
	s.w.Calm()
	s.w.Until(7 * time.Second) // whoever is down comes up
	for _, sl := range s.slots {
		s.tellView(sl)
	}
	s.w.Eventually(30*time.Second, "equal", s.equal)
	if s.w.Failed() {
		return
	}
	for _, sl := range s.slots {
		s.count(sl)
		if !sl.core.Ready() {
			s.w.Fail("%s never became ready", sl.id())
		}
		for d := range s.acked.All() {
			if !sl.core.Seen().Covers(d) {
				s.w.Fail("acknowledged write %v is lost at %s", d, sl.id())
			}
		}
		for _, o := range s.slots {
			if !o.kept.Leq(sl.core.Seen()) {
				s.w.Fail("%s lacks what former lives of %s did: %v of %v", sl.id(), o.id(), sl.core.Seen(), o.kept)
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

// stateBytes is the canonical encoding of what a replica holds. Marks are bookkeeping that each
// replica drops when it may, so they stay out.
func stateBytes(c *Core) []byte {
	var b pmap.Builder[*Held]
	for key, h := range c.Keys().All() {
		for path := range h.Marks() {
			h.Store = h.WithoutMark(path)
		}
		if !h.Empty() {
			b.Add([]byte(key), &h)
		}
	}
	return encodeState(State{Keys{b.Map()}, c.seen, c.sum})
}

// encodeState returns the stream of a state in one piece.
func encodeState(s State) []byte {
	src := source{keys: s.Keys, head: head{head: s.Seen, state: true, sum: s.sum}}
	out, _ := src.take(1 << 30)
	return out
}

// count adds what a member has counted.
func (s *play) count(sl *slot) {
	st := sl.core.Stats()
	if sl.misled {
		s.misled, st.Malformed = s.misled+int(st.Malformed), 0
	}
	s.total = addStats(s.total, st)
}

func addStats(a, b Stats) Stats {
	a.Events += b.Events
	a.Applied += b.Applied
	a.Deltas += b.Deltas
	a.Bulks += b.Bulks
	a.Compared += b.Compared
	a.Waiting += b.Waiting
	a.WindowDrops += b.WindowDrops
	a.Cut += b.Cut
	a.Bases += b.Bases
	a.Awaiting += b.Awaiting
	a.Malformed += b.Malformed
	a.Diverged += b.Diverged
	a.Mended += b.Mended
	a.Rotten += b.Rotten
	return a
}
