package core

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/sim"
)

// Client actions of a history.

// update carries out: update MEMBER LEVEL OP, OP … The level "quiet" is an update without a waiter.
// "refused" is an update that fails after everything else, and must leave no trace; "direct" is one
// at Local between two steps. A plus after the
// level says that another event follows at once.
func (s *play) update(a sim.Args) { s.updateAt(a, s.slots[a.Int(0, len(s.slots))]) }

func (s *play) updateAt(a sim.Args, sl *slot) {
	word, more := strings.CutSuffix(a.Word(1), "+")
	kind := slices.Index(levels[:], word)
	if kind < 0 && !slices.Contains([]string{quiet, refused, direct}, a.Word(1)) {
		a.Fail("the second word must be one of " + strings.Join(levels[:], ", ") + ", " + quiet +
			", " + refused + ", " + direct)
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
	switch {
	case a.Word(1) == direct:
		if s.directly(sl, ops) {
			return
		}
		kind = 0
	case kind < 0:
		s.quietly(sl, ops, a.Word(1) == refused)
		return
	}
	id, level := s.call(sl), Level{Kind: LevelKind(kind)}
	s.step(sl, Update{ID: id, Level: level, Deadline: s.now(sl).Add(8 * time.Second), More: more,
		Modify: func(t *history.Txn) error {
			does, err := carryOut(t, ops)
			if err != nil {
				return err
			}
			if level.Kind != Local && idle(sl.core, t, does) {
				s.waiting[id] = attempt{knew: sl.shows}
				return nil
			}
			d, err := s.record(sl, t, does)
			if s.disks && !s.behind {
				s.locals[id] = d
			}
			if level.Kind != Local {
				s.waiting[id] = attempt{d, d.knew}
				s.flux.wrote(d, sl.i)
			}
			return err
		}})
	if len(sl.open) > 0 && !more && !s.w.Failed() && !sl.core.disk.crowded() {
		s.w.Fail("%s: the event goes on after an update that somebody waited for", sl.id())
	}
}

// directly makes an update between two steps, which is answered at once. It reports whether the
// core takes it.
func (s *play) directly(sl *slot, ops []op) bool {
	was := len(sl.open)
	var d *deed
	defer func() {
		p := recover()
		if p == nil {
			return
		} else if _, ok := p.(planted); !ok {
			panic(p)
		}
		s.happened["panics"]++ // and nothing has changed
		if d != nil {
			s.unmade(d)
			sl.open = sl.open[:was]
		}
	}()
	o, err := sl.core.Direct(s.now(sl), ops[0].key, func(t *history.Txn) error {
		does, err := carryOut(t, ops)
		if err != nil {
			return err
		}
		d, err = s.record(sl, t, does)
		return err
	})
	switch {
	case errors.Is(err, ErrStep):
		return false
	case err != nil:
		s.w.Fail("%s: %v", sl.id(), err)
	case o.Changed && o.Seen.Get(d.by) != d.dot.N:
		s.w.Fail("%s: the value of event %v covers %v", sl.id(), d.dot, o.Seen)
	case o.Changed && d.dot.N != sl.core.Seen().Get(d.by)+sl.core.history.Open():
		s.w.Fail("%s: the update has not taken its number", sl.id())
	}
	s.happened["updates between steps"]++
	d.told = err == nil
	core := sl.core
	s.w.After(s.w.Span("commit", 0, 2*time.Millisecond), func() {
		if sl.core == core && core.Gathers() {
			s.step(sl, End{})
		}
	})
	s.check(sl)
	return true
}

// unmade records that an update was not made and never will be.
func (s *play) unmade(d *deed) {
	d.never = true
	e := s.events[d.dot]
	if e.deeds = e.deeds.without(names{}.with(d.id)); len(e.deeds) == 0 {
		delete(s.events, d.dot)
	}
}

// quietly makes an update without a waiter.
func (s *play) quietly(sl *slot, ops []op, fail bool) {
	s.step(sl, Update{Modify: func(t *history.Txn) error {
		does, err := carryOut(t, ops)
		if err != nil || fail {
			return errors.Join(err, errRefused)
		}
		_, err = s.record(sl, t, does)
		return err
	}})
}

var errRefused = errors.New("refused")

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
	id := s.call(sl)
	s.reads[id] = s.acked
	if level.Kind == Linear {
		s.reads[id] = s.acked.join(s.shown)
		s.flux.asked(id, sl.i)
	}
	s.step(sl, Read{ID: id, Level: level, Deadline: s.now(sl).Add(8 * time.Second)})
}

func (s *play) ready() (n int) {
	for _, sl := range s.slots {
		if sl.core != nil && sl.core.Ready() && s.current(sl) {
			n++
		}
	}
	return n
}

// The phases of a history: all members start, then actions and faults.
const warm, span = 8 * time.Second, 30 * time.Second

// fewKinds are the kinds of keys in half of the histories: with few types, updates of one key meet
// more often.
const fewKinds = "scr"

// pickKinds picks the kinds of keys of a history.
func pickKinds(w *sim.World, r *rand.Rand) string {
	if !w.Chance("all-kinds", 2./3) {
		return fewKinds
	}
	all := slices.DeleteFunc(letters(), func(b byte) bool { return b == 'z' })
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return string(all[:2+r.IntN(5)])
}

// makeUp generates the events of the history.
func (s *play) makeUp(r *rand.Rand) {
	s.letters = pickKinds(s.w, r)
	keys := 1 + r.IntN(3)
	at := func() time.Duration { return warm + s.w.Moment(span) }
	for range 40 + r.IntN(100) {
		t, member := at(), r.IntN(players)
		burst := r.IntN(6) * r.IntN(2) // sometimes
		for i := range 1 + burst {
			word := []string{"local", "all", "majority", "majority", "majority", quiet, quiet,
				refused, direct, direct}[r.IntN(10)]
			if burst%2 == 1 && (i < burst || burst == 5) && slices.Contains(levels[:], word) {
				word += "+" // after the last of them, nothing follows
			}
			s.w.Act(t, "update", member, word, opsText(randomOps(r, s.letters, keys)))
		}
	}
	for range 30 {
		s.w.Act(at(), "read", r.IntN(players), []string{"majority", "linear"}[r.IntN(2)])
	}
	for range r.IntN(8) {
		s.w.Act(at(), "cut", randomLinks(r), "for", time.Duration(r.IntN(15000))*time.Millisecond)
	}
	for range r.IntN(5) {
		t, member := at(), r.IntN(players)
		for range r.IntN(4) { // updates without a waiter may be in flight
			s.w.Act(t, "update", member, quiet, opsText(randomOps(r, s.letters, keys)))
		}
		s.w.Act(at(), "leave", r.IntN(players), "for", time.Duration(r.IntN(5000))*time.Millisecond)
		s.w.Act(t, "again", member, "for", time.Duration(r.IntN(5000))*time.Millisecond)
	}
	for range r.IntN(5) {
		s.makeKills(r, at())
	}
	for range r.IntN(5) {
		s.w.Act(at(), "break", r.IntN(players), "after", 1+r.IntN(1+r.IntN(100)))
	}
	if s.disks { // of two cores of one process only one has the disk
		return
	}
	if s.w.Chance("ghosts", 1./4) {
		s.makeGhosts(r, keys)
	}
	if s.w.Chance("restored", *restored) {
		s.makeSnapshots(r)
	}
}

// makeKills generates a kill, and sometimes more while the member that comes back is being
// refilled.
func (s *play) makeKills(r *rand.Rand, t time.Duration) {
	member := r.IntN(players)
	for {
		away := time.Duration(500+r.IntN(5000)) * time.Millisecond
		s.w.Act(t, "kill", member, "for", away)
		if r.IntN(3) > 0 {
			return
		}
		t += away + time.Duration(r.IntN(2000))*time.Millisecond
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
