package core

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/sim"
)

// Histories in which members come and go. They check the promise to the user: a majority read that
// ends shows every write that was acknowledged at a majority when it began.

// flux is the additional state of such a play.
type flux struct {
	least   int // MinMembers
	first   int // members that begin
	names   int
	recount recount
	store   *simStore     // holds the membership as a record; nil: there is no record
	known   quorum.Memory // of all members that have run, if they have disks
}

// places is the number of members that may run at once.
const places = 7

func newFluxPlay(w *sim.World) *play { return newFluxPlayOn(w, nil) }

func newFluxPlayOn(w *sim.World, store *simStore) *play {
	s := newPlay(w)
	f := &flux{recount: newRecount()}
	s.flux, s.past = f, 0
	f.first = w.Number("first", 1, 5)
	f.least = w.Number("least", 1, f.first+1)
	if f.least < f.first/2+1 || w.Chance("static", 1./3) {
		f.least = f.first
	}
	if f.store = store; store != nil {
		f.least = 1
	}
	for i := players; i < places; i++ {
		s.slots = append(s.slots, &slot{i: i})
	}
	for _, sl := range s.slots {
		f.baptize(sl)
	}
	return s
}

// baptize gives an unused name to the process that starts next at a place.
func (f *flux) baptize(sl *slot) {
	f.names++
	sl.member = fmt.Sprintf("%c%d", 'a'+sl.i, f.names)
	sl.disk = simDisk{incarnation: sl.disk.incarnation + 1} // another machine
}

func (s *play) least() int {
	if s.flux != nil {
		return s.flux.least
	}
	return players
}

func (s *play) forgetAfter() time.Duration {
	if s.flux != nil {
		return 5 * time.Second
	}
	return 0
}

// unseen reports whether the next view of a member leaves another one out. Members that have never
// counted see all that run, since two clusters that begin apart are beyond what is promised.
func (s *play) unseen(sl *slot) bool {
	if s.flux == nil {
		return s.w.Chance("unseen", 1./12)
	}
	return sl.core.members.counted && s.w.Chance("unseen", 1./6)
}

// mayFail reports whether a member may fail now: a majority of the counted members runs without it.
func (s *play) mayFail(sl *slot) bool {
	if s.flux == nil {
		left := s.ready()
		if sl.core.Ready() && s.current(sl) {
			left--
		}
		return left >= players/2+1
	}
	return s.voters(sl) >= s.majority()
}

// majority returns how many of the counted members are a majority.
func (s *play) majority() int { return s.majorityIn(s.memory()) }

func (s *play) majorityIn(m quorum.Memory) int {
	return quorum.MajorityOf(max(m.Counted(), s.flux.least))
}

// memory returns the merged memory of all running members.
func (s *play) memory() (m quorum.Memory) {
	if s.flux.store != nil {
		return s.flux.store.memory
	}
	for _, sl := range s.slots {
		if sl.core != nil {
			m = m.Merge(sl.core.members.Memory)
		}
	}
	return m
}

// voters counts the running and counting members, except one.
func (s *play) voters(but *slot) (n int) {
	m := s.memory()
	for _, sl := range s.slots {
		if r := m.Of(sl.member); sl != but && sl.core != nil &&
			sl.core.members.counts(&sl.core.disk) &&
			r.Rank == quorum.In &&
			r.Inc == sl.core.members.inc {
			n++
		}
	}
	return n
}

// handsOver reports whether a member that has left was counted while other members were, so that a
// majority of those has its data. A process that started under a name that was marked as going is
// gone without having counted.
func (s *play) handsOver(sl *slot) bool {
	own := sl.core.members.Own()
	return own.Rank == quorum.Gone && own.Inc == sl.core.members.inc && sl.core.members.counted &&
		s.memory().Counted() > 0
}

// comeBack makes a member start again, under its name or another one. Where members come and go, it
// sometimes never starts again.
func (s *play) comeBack(sl *slot, after time.Duration) {
	if s.flux != nil && s.disks {
		if s.replaceDisk(sl) {
			return
		}
	} else if s.flux != nil && sl.past == nil {
		if s.w.Chance("for-good", 1./4) {
			return
		}
		if s.w.Chance("renamed", 1./2) {
			s.flux.baptize(sl)
		}
	}
	sl.coming = true
	s.w.After(after, func() { s.startIfItMay(sl) })
}

// startIfItMay starts a process, unless it is one of new members that could be a cluster of their
// own.
func (s *play) startIfItMay(sl *slot) {
	if sl.coming = false; s.flux == nil || !s.disks || s.mayStart(sl) {
		s.start(sl)
	}
}

// join starts a member at a free place: join PLACE NAME, which is "new" or "old".
func (s *play) join(a sim.Args) {
	sl := s.slots[a.Int(0, len(s.slots))]
	if sl.core != nil || sl.past != nil || sl.coming {
		return
	}
	if a.Word(1) == "new" {
		s.flux.baptize(sl)
	}
	if s.disks && !s.mayStart(sl) {
		return
	}
	s.happened["joins"]++
	s.start(sl)
}

// look gives a member another view: view PLACE.
func (s *play) look(a sim.Args) { s.tellView(s.slots[a.Int(0, len(s.slots))]) }

// doForget makes a member forget another: forget PLACE OTHER.
func (s *play) doForget(a sim.Args) {
	sl, o := s.slots[a.Int(0, len(s.slots))], s.slots[a.Int(1, len(s.slots))]
	if sl.core == nil || sl == o {
		return
	}
	s.step(sl, Forget{ID: s.call(sl), Member: o.member, Deadline: s.now(sl).Add(8 * time.Second)})
}

// makeFlux generates the events of the history.
func (s *play) makeFlux(r *rand.Rand) {
	s.letters = pickKinds(s.w, r)
	at := func() time.Duration { return warm + s.w.Moment(span) }
	place := func() int { return r.IntN(places) }
	for range 60 + r.IntN(60) {
		s.w.Act(at(), "update", place(), []string{direct, "local", "majority",
			"majority", "majority"}[r.IntN(5)], opsText(randomOps(r, s.letters, 2)))
	}
	for range 60 {
		s.w.Act(at(), "read", place(), []string{"majority", "linear"}[r.IntN(2)])
	}
	for range r.IntN(8) {
		s.w.Act(at(), "cut", partition(r), "for", time.Duration(r.IntN(15000))*time.Millisecond)
	}
	for range r.IntN(10) {
		s.w.Act(at(), "join", place(), []string{"new", "old"}[r.IntN(2)])
	}
	for range r.IntN(6) {
		t := at()
		for range 1 + r.IntN(2) { // several at once
			s.w.Act(t, "leave", place(), "for", time.Duration(r.IntN(10000))*time.Millisecond)
		}
	}
	for range r.IntN(6) {
		s.w.Act(at(), "kill", place(), "for", time.Duration(500+r.IntN(5000))*time.Millisecond)
	}
	for range r.IntN(3) {
		s.w.Act(at(), "again", place(), "for", time.Duration(r.IntN(5000))*time.Millisecond)
	}
	for range r.IntN(20) {
		s.w.Act(at(), "view", place())
	}
	for range r.IntN(3) {
		s.w.Act(at(), "break", place(), "after", 1+r.IntN(200))
	}
	for range r.IntN(4) {
		s.w.Act(at(), "forget", place(), place())
	}
}

// partition picks links between two sides, in one direction or both.
func partition(r *rand.Rand) string {
	side := r.IntN(1 << places)
	oneWay := r.IntN(4) == 0
	text := ""
	for a := range places {
		for b := range places {
			if side>>a&1 == 1 && side>>b&1 == 0 {
				text += fmt.Sprintf(" %d>%d", a, b)
				if !oneWay {
					text += fmt.Sprintf(" %d>%d", b, a)
				}
			}
		}
	}
	if text == "" {
		return "0>0"
	}
	return text[1:]
}

// runFlux plays the history.
func (s *play) runFlux() {
	s.makeFlux(s.w.Rand())
	for _, sl := range s.slots[:s.flux.first] {
		s.start(sl)
	}
	s.w.Until(warm + span + 10*time.Second)
	if !s.w.Failed() {
		s.healFlux()
	}
	s.flux.recount.judge(s)
	s.happened["members gone"] += s.memory().Count(quorum.Gone)
}

// healFlux ends every fault. If a majority of the counted members is left, all become ready and
// equal, nothing acknowledged is lost, and writes succeed again, even if no crashed member comes
// back.
func (s *play) healFlux() {
	s.w.Calm()
	s.mendDisks()
	for _, sl := range s.slots {
		s.tellView(sl)
	}
	s.w.Until(12 * time.Second) // members that are to come back do
	live := s.voters(nil) >= s.majority()
	if s.disks {
		live = s.live()
	}
	for _, sl := range s.slots {
		s.tellView(sl)
	}
	if !live {
		return
	}
	for range 60 {
		if s.settled() {
			break
		}
		s.w.Until(time.Second)
	}
	if !s.settled() && !s.w.Failed() {
		s.w.Fail("not equal and ready: %s", s.memories())
	}
	for _, sl := range s.slots {
		if sl.core != nil && !s.w.Failed() {
			s.count(sl)
			if lost := s.acked.without(sl.shows); len(lost) > 0 {
				s.w.Fail("acknowledged updates %v are lost at %s", lost, sl.id())
			}
		}
	}
}

// settled reports whether all running members are ready, equal and have the same memory.
func (s *play) settled() bool {
	var first *slot
	for _, sl := range s.slots {
		if sl.core == nil {
			continue
		}
		if first == nil {
			first = sl
		}
		if !sl.core.Ready() || !sl.core.Seen().Equal(first.core.Seen()) ||
			sl.core.members.Digest() != first.core.members.Digest() {
			return false
		}
	}
	return true
}

// memories describes the memory of each running member.
func (s *play) memories() (text string) {
	for _, sl := range s.slots {
		if c := sl.core; c != nil {
			text += fmt.Sprintf(
				"\n%s %s %v inc %d ready %t entering %t leaving %t %t ops %d kept %t remembers:",
				sl.id(), sl.member, c.Replica(), c.members.inc.Number, c.members.ready,
				c.members.entering, c.members.withdrawn, c.members.leaving, c.waits.Len(),
				c.disk.kept)
			for _, r := range c.members.Members() {
				text += fmt.Sprintf(" %s/%d %d,%v %s", r.Name, r.Version, r.Inc.Number,
					r.Inc.Replica, [...]string{"absent", "joining", "in", "going", "gone"}[r.Rank])
			}
		}
	}
	return text
}

func TestHistories_WhereMembersComeAndGo(t *testing.T) {
	histories(t, *seeds, func(w *sim.World) *play {
		s := newFluxPlay(w)
		s.runFlux()
		return s
	}, "acknowledged writes", "reads checked", "joins", "members that left",
		"incarnations continued", "members gone")
}
