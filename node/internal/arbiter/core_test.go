package arbiter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/node/internal/arbiter"
)

// stage is one arbiter, and its latest effects.
type stage struct {
	*testing.T
	core  *arbiter.Core
	now   time.Time
	gate  arbiter.Gate
	try   arbiter.Try
	probe uint64
	asks  arbiter.Compare
	other string   // the leader that uses another store
	peers []string // members that say that they use another store
	gave  uint64   // the attempt that was released
	said  arbiter.Verdict
	here  bool
	wake  time.Time
}

func newStage(t *testing.T, members int) *stage {
	cfg := arbiter.Config{Members: members, TTL: ttl, Session: "mine"}
	return &stage{T: t, core: arbiter.New(cfg), now: time.Unix(1_700_000_000, 0)}
}

func (s *stage) step(e any) {
	for _, e := range s.core.Step(s.now, e) {
		switch e := e.(type) {
		case arbiter.Gate:
			s.gate = e
		case arbiter.Tell:
			s.here = e.Here
		case arbiter.Try:
			s.try = e
		case arbiter.Probe:
			s.probe = e.Op
		case arbiter.Compare:
			s.asks = e
		case arbiter.Foreign:
			s.other = e.Leader
		case arbiter.ForeignPeer:
			s.peers = append(s.peers, e.Member)
		case arbiter.Release:
			s.gave = e.Op
		case arbiter.Send:
			s.said = e.Verdict
		}
	}
	s.wake = s.core.NextWake()
}

// sees passes the core a view; the first member is the oldest, and "me" is the core's own.
func (s *stage) sees(members ...string) {
	oldest := members[0]
	s.step(arbiter.View{Self: "me", Oldest: oldest, Members: members})
}

// whole makes the core the leader of a cluster of the members, with the lease of the majority.
func (s *stage) whole(members ...string) {
	s.sees(members...)
	s.begins()
	s.that(s.gate.Open, "open")
}

// begins answers the attempts of a member that begins a cluster.
func (s *stage) begins() {
	if s.try.Lease == arbiter.Rest {
		s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
	}
	s.that(s.try.Lease == arbiter.Majority, "asking for the majority")
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
}

// pass advances the time, with the wakes that the core asked for.
func (s *stage) pass(d time.Duration) {
	for end := s.now.Add(d); ; {
		if s.wake.IsZero() || s.wake.After(end) {
			s.now = end
			return
		}
		s.now, s.wake = s.wake, time.Time{}
		s.step(arbiter.Wake{})
	}
}

func (s *stage) that(ok bool, what string) {
	s.Helper()
	if !ok {
		s.Errorf("not %s: %v, gate %v, try %v", what, s.core, s.gate, s.try)
	}
}

func TestCore_FirstMemberAcquiresBothLeases(t *testing.T) {
	s := newStage(t, 1)
	s.sees("me")
	rest := s.try
	s.that(!s.gate.Open && rest.Op > 0 && rest.Lease == arbiter.Rest, "asking, and shut")
	s.step(arbiter.Tried{Op: rest.Op, Result: arbiter.Held})
	s.that(!s.gate.Open && s.try.Lease == arbiter.Majority, "asking for the other, and shut")
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
	s.that(s.gate.Open && !s.here, "open")
	s.pass(2 * time.Second)
	s.step(arbiter.Wake{})
	s.that(s.gate.Open && s.gave == rest.Op, "open with one lease")
}

// A member that begins another incarnation sees only itself at first. A half that hosts meanwhile
// goes on.
func TestCore_NewMemberIsShutWhileAHalfHosts(t *testing.T) {
	s := newStage(t, 1)
	s.sees("me")
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Taken})
	s.that(!s.gate.Open && s.try.Lease == arbiter.Rest &&
		strings.Contains(s.gate.Why, "another side"), "shut, without an attempt")
}

func TestCore_NewMemberIsShutWhileAnotherSideHosts(t *testing.T) {
	s := newStage(t, 1)
	s.sees("me")
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Taken})
	s.that(!s.gate.Open && strings.Contains(s.gate.Why, "another side"), "shut")
	s.pass(2 * time.Second)
	s.begins()
	s.that(s.gate.Open, "open")
}

func TestCore_BeginningOfAClusterNeedsItsMembers(t *testing.T) {
	s := newStage(t, 3)
	s.sees("me", "b")
	for s.try.Op == 0 {
		s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
		s.pass(time.Second / 2)
	}
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
	s.that(!s.gate.Open && s.gave == s.try.Op && strings.Contains(s.gate.Why, "fewer do not"),
		"shut, without the lease, although nobody else hosts")
	s.sees("me", "b", "c")
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
	s.that(s.gate.Open && s.said.Members == 5, "open, and two more may start")
	s.pass(6 * time.Second)
	s.that(s.gate.Open && s.said.Members == 3, "open, and nobody else has started")
	s.sees("me", "b")
	s.that(s.gate.Open, "a majority of three")
}

func TestCore_CutWhileMembersStart(t *testing.T) {
	s := newStage(t, 3)
	s.whole("me", "b", "c")
	s.sees("me", "b")
	s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
	s.that(!s.gate.Open, "shut: the majority of five may be on the other side")
}

// Members that were assumed to start are not counted any more before a provider that takes 3 s can
// notice the first cut: two of four are a half then, and do not wait for a larger side.
func TestCore_HalvesOfAClusterThatHasJustStarted(t *testing.T) {
	s := newStage(t, 3)
	s.whole("me", "b", "c", "d")
	s.that(s.said.Members == 5, "one more may start")
	s.pass(2500 * time.Millisecond)
	s.sees("me", "b")
	s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
	s.that(s.gate.Open && s.try.Lease == arbiter.Rest, "open, and asking for the lease at once")
}

func TestCore_MajorityNeverWaitsForTheStore(t *testing.T) {
	for _, result := range []arbiter.Result{arbiter.Unknown, arbiter.Taken} {
		s := newStage(t, 1)
		s.whole("me", "b", "c", "d", "e")
		s.step(arbiter.Lost{Op: s.try.Op})
		s.sees("me", "b", "c")
		for range ttl / time.Second {
			s.that(s.gate.Open && s.said.Kind == arbiter.Pending, "open")
			s.step(arbiter.Tried{Op: s.try.Op, Result: result})
			s.pass(time.Second)
		}
		s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
		s.that(s.gate.Open && s.here && s.said.Kind == arbiter.Ours, "open with the lease")
		s.pass(time.Minute + time.Second)
		s.that(!s.here && s.said == arbiter.Verdict{Kind: arbiter.Whole, Members: 3,
			Session: "mine"},
			"without the members that are missing for a minute")
	}
}

func TestCore_MinorityStopsWhenTheStoreAnswers(t *testing.T) {
	for _, result := range []arbiter.Result{arbiter.Held, arbiter.Taken} {
		s := newStage(t, 1)
		s.whole("me", "b", "c")
		held := s.try.Op
		s.sees("me")
		s.that(s.gave == held && s.gate.Open, "the lease is released")
		s.step(arbiter.Probed{Op: s.probe, Result: result})
		s.that(!s.gate.Open && strings.Contains(s.gate.Why, "1 of 3"), "shut")
	}
}

func TestCore_MinorityWithoutStoreStopsAfterItsLeases(t *testing.T) {
	s := newStage(t, 1)
	s.whole("me", "b", "c")
	s.sees("me")
	open := time.Duration(0)
	for ; s.gate.Open && open < 2*ttl; open += time.Second {
		s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Unknown})
		s.pass(time.Second)
	}
	if open < ttl || open > ttl+time.Second {
		t.Errorf("open for %v", open)
	}
}

// A store that was away for long answers a minority and the majority at the same time. The majority
// is given the time to acquire its lease.
func TestCore_AMinorityWaitsWhenTheStoreAnswersAgain(t *testing.T) {
	s := newStage(t, 1)
	s.whole("me", "b", "c")
	s.sees("me")
	for range 2 * ttl / time.Second {
		s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Unknown})
		s.pass(time.Second)
	}
	s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
	s.that(!s.gate.Open && s.try.Lease == arbiter.Majority, "shut, and not trying yet")
	for range (ttl - time.Second) / time.Second {
		s.pass(time.Second)
		s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
		s.that(s.try.Lease == arbiter.Majority, "not trying yet")
	}
	s.pass(2 * time.Second)
	s.that(s.try.Lease == arbiter.Rest, "trying: no majority reaches the store")
}

// A leader that begins a later incarnation, or has followed another one on a side without a
// majority, does not know whether the store has just come back, and waits as long. One that was in
// a majority a moment ago knows.
func TestCore_ALeaderThatCannotKnowOfAnOutageWaits(t *testing.T) {
	follower := func(s *stage, members int) {
		s.sees("a", "me", "b", "c", "d")
		s.step(arbiter.Heard{From: "a", Verdict: arbiter.Verdict{Kind: arbiter.Ours, Members: 5}})
		if members < 3 {
			s.sees("a", "me")
		}
		s.pass(ttl)
		s.sees("me")
	}
	for name, c := range map[string]struct {
		begin func(*stage)
		waits bool
	}{
		"a later incarnation": {func(s *stage) {
			s.core = arbiter.New(arbiter.Config{Members: 3, Later: true, TTL: ttl})
			s.sees("me")
		}, true},
		"a follower in a minority": {func(s *stage) { follower(s, 2) }, true},
		"a follower in a majority": {func(s *stage) { follower(s, 5) }, false},
	} {
		s := newStage(t, 3)
		c.begin(s)
		took := time.Duration(0)
		for s.try.Lease != arbiter.Rest && took < 2*ttl {
			took += time.Second / 2
			s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
			s.pass(time.Second / 2)
		}
		if took >= 2*ttl || (took > ttl/2) != c.waits {
			t.Errorf("%s: tries after %v: %v", name, took, s.core)
		}
		s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
		s.that(s.gate.Open, "open: "+name)
	}
}

// A member of a side without a majority hosts as long as its leader says so.
func TestCore_AMinorityDoesNotTrustASilentLeader(t *testing.T) {
	s := newStage(t, 3)
	s.sees("a", "me")
	s.step(arbiter.Heard{From: "a", Verdict: arbiter.Verdict{Kind: arbiter.Ours, Members: 5}})
	s.that(s.gate.Open && s.here, "open")
	s.pass(arbiter.Config{TTL: ttl}.Lapse())
	s.that(!s.gate.Open, "shut")
}

// A majority that finds its lease held by another member for longer than one that has crashed could
// hold it yields to the side of that member.
func TestCore_AMajorityYieldsToAHolderThatLives(t *testing.T) {
	s := newStage(t, 1)
	s.whole("me", "b", "c")
	s.step(arbiter.Lost{Op: s.try.Op})
	took := time.Duration(0)
	for ; s.gate.Open && took < 2*ttl; took += time.Second {
		s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Taken})
		s.pass(time.Second)
	}
	if took <= ttl+ttl/10 || took >= 2*ttl {
		t.Errorf("yields after %v: %v", took, s.core)
	}
}

// An older member has seen this side for long before this side sees it: it has found that another
// side hosts, and that was this one. The lease is handed over, and no gate shuts.
func TestCore_TheSideThatAnOlderMemberYieldedTo(t *testing.T) {
	s := newStage(t, 2)
	s.whole("me", "b", "c")
	lease := s.try.Op
	s.pass(time.Minute)
	s.sees("a", "me", "b", "c")
	s.pass(time.Second)
	yields := arbiter.Heard{From: "a", Verdict: arbiter.Verdict{Kind: arbiter.Yielding, Members: 4}}
	s.step(yields)
	s.that(s.gave == lease && s.gate.Open, "handed over, and open")
	s.pass(time.Second)
	s.step(arbiter.Heard{From: "a", Verdict: arbiter.Verdict{Kind: arbiter.Whole, Members: 4}})
	s.that(s.gate.Open, "open")
	s.pass(ttl)
	s.step(yields)
	s.that(!s.gate.Open, "shut: it is another side")
}

// A leader that sees all members, and finds the lease with another one, speaks often: that one may
// not have seen it before, and gives the lease up when it hears of it.
func TestCore_ALeaderWithoutTheLeaseSpeaksOften(t *testing.T) {
	s := newStage(t, 2)
	s.whole("me", "b", "c")
	s.step(arbiter.Lost{Op: s.try.Op})
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Taken})
	beat := arbiter.Config{TTL: ttl}.Beat()
	s.pass(5 * beat)
	s.said = arbiter.Verdict{}
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Taken})
	s.pass(beat)
	s.that(s.said.Kind == arbiter.Whole, "spoken")
}

func TestCore_HalfGoesOnUntilTheStoreDecides(t *testing.T) {
	for _, result := range []arbiter.Result{arbiter.Held, arbiter.Taken} {
		s := newStage(t, 1)
		s.whole("me", "b", "c", "d")
		s.sees("me", "d")
		s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
		s.that(s.gate.Open && s.try.Lease == arbiter.Rest, "trying at once")
		s.step(arbiter.Tried{Op: s.try.Op, Result: result})
		s.that(s.gate.Open == (result == arbiter.Held), "as the store has decided")
	}
}

// The fewer of seven members a side without a majority has, the later it tries.
func TestCore_SmallerSidesTryLater(t *testing.T) {
	names := []string{"me", "b", "c", "d", "e", "f", "g"}
	last := time.Duration(0)
	for size := 3; size > 0; size-- {
		s := newStage(t, 1)
		s.whole(names...)
		s.sees(names[:size]...)
		took := time.Duration(0)
		for s.try.Lease == arbiter.Majority && took < 10*time.Second {
			took += 10 * time.Millisecond
			s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
			s.pass(10 * time.Millisecond)
		}
		if took < last+500*time.Millisecond || took > 5*time.Second {
			t.Errorf("%d try after %v, one more after %v", size, took, last)
		}
		last = took
	}
}

func TestCore_RestStepsDownForAMajority(t *testing.T) {
	s := newStage(t, 1)
	s.whole("me", "b", "c")
	s.sees("me")
	s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Held})
	s.pass(5 * time.Second)
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
	s.that(s.gate.Open && s.here && s.try.Lease == arbiter.Rest, "hosting")
	s.pass(time.Second)
	s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Unknown})
	s.that(s.gate.Open, "hosting while the lease lasts")
	s.pass(time.Second)
	s.step(arbiter.Probed{Op: s.probe, Result: arbiter.Taken})
	s.that(!s.gate.Open && !s.here && s.gave == s.try.Op, "stepped down")
}

// The lease is granted too late, or to a member that has left.
func TestCore_LateGrantIsReleased(t *testing.T) {
	s := newStage(t, 1)
	s.sees("me")
	first := s.try.Op
	s.pass(10 * time.Second)
	s.that(s.try.Op > first, "trying again after an attempt without an answer")
	s.step(arbiter.Tried{Op: first, Result: arbiter.Held})
	s.that(s.gave == first && !s.gate.Open, "released")
}

func TestCore_EndedCoreIsSilent(t *testing.T) {
	s := newStage(t, 1)
	s.whole("me", "b")
	s.step(arbiter.View{Self: "me", Removed: true})
	s.that(!s.gate.Open && s.gave == s.try.Op && !s.here, "ended")
	if out := s.core.Step(s.now, arbiter.Wake{}); len(out) > 0 {
		t.Errorf("then %v", out)
	}
	if out := s.core.Step(s.now, arbiter.Tried{Op: 9, Result: arbiter.Held}); len(out) != 1 {
		t.Errorf("a late grant is not released: %v", out)
	}
}

// hears passes the core a verdict of the oldest member, which counts three members.
func (s *stage) hears(session string) {
	s.step(arbiter.Heard{From: "a", Verdict: arbiter.Verdict{Kind: arbiter.Whole, Members: 3,
		Session: session}})
}

// A member looks once in its own store for the lease that its leader holds. If it is not there, it
// hosts nothing, and gives up after two TTLs.
func TestCore_AnotherLeaseStore(t *testing.T) {
	s := newStage(t, 2)
	s.sees("a", "me", "b")
	s.hears("a's")
	s.that(s.gate.Open && s.asks.Session == "a's", "open, and looking")
	s.step(arbiter.Compared{Op: s.asks.Op, Result: arbiter.Held})
	s.that(!s.gate.Open && strings.Contains(s.gate.Why, "different stores"), "shut")
	for range 2*ttl/time.Second - 1 {
		s.pass(time.Second)
		s.hears("a's")
		s.step(arbiter.Compared{Op: s.asks.Op, Result: arbiter.Held})
		s.that(!s.gate.Open && s.other == "", "still looking")
	}
	s.pass(2 * time.Second)
	s.that(!s.gate.Open && s.other == "a", "given up")
	s.that(s.said.Kind == arbiter.OtherStore, "and said so to the others")
}

// A member that says that it uses another store is reported once, by the leader too. That says
// nothing about which side hosts.
func TestCore_AnotherMemberUsesAnotherStore(t *testing.T) {
	says := arbiter.Verdict{Kind: arbiter.OtherStore, Members: 3}
	for _, oldest := range []string{"me", "a"} {
		s := newStage(t, 2)
		others := slices.DeleteFunc([]string{"me", "a", "b"}, func(id string) bool {
			return id == oldest
		})
		if s.sees(append([]string{oldest}, others...)...); oldest == "me" {
			s.begins()
		} else {
			s.hears("")
		}
		for range 2 {
			s.step(arbiter.Heard{From: "b", Verdict: says})
			s.step(arbiter.Heard{From: "unlisted", Verdict: says})
		}
		s.that(s.gate.Open && slices.Equal(s.peers, []string{"b"}), "open, and reported once")
		s.step(arbiter.Heard{From: "a", Verdict: says})
		s.that(s.gate.Open && slices.Equal(s.peers, []string{"b", "a"}), "open, and the oldest too")
	}
}

// What is no proof: a store that does not answer, a leader that does not hold the lease any more or
// has a new session, and one that is silent.
func TestCore_NoProofOfAnotherLeaseStore(t *testing.T) {
	s := newStage(t, 2)
	s.sees("a", "me", "b")
	s.hears("a's")
	s.step(arbiter.Compared{Op: s.asks.Op, Result: arbiter.Unknown})
	s.that(s.gate.Open, "open without an answer")
	s.pass(2 * time.Second)
	s.step(arbiter.Compared{Op: s.asks.Op, Result: arbiter.Held})
	s.that(!s.gate.Open, "shut")
	s.hears("")
	s.that(s.gate.Open, "open: it has lost the lease")
	s.hears("a's next")
	s.that(s.gate.Open && s.asks.Session == "a's next", "looking for its next session")
	s.step(arbiter.Compared{Op: s.asks.Op, Result: arbiter.Taken})
	asked := s.asks.Op
	for range 3 * ttl / time.Second {
		s.hears("a's third")
		s.pass(time.Second)
	}
	s.that(s.gate.Open && s.asks.Op == asked && s.other == "", "found: not looking again")
}

// The oldest member does not reach the store when the cluster begins. Another one acquires the
// lease in its place, and gives it up when the oldest one knows how many members there are.
func TestCore_AMemberBeginsForAnOldestWithoutTheStore(t *testing.T) {
	s := newStage(t, 2)
	s.sees("old", "me", "new")
	hears := func(v arbiter.Verdict) { s.step(arbiter.Heard{From: "old", Verdict: v}) }
	hears(arbiter.Verdict{Kind: arbiter.Undecided})
	s.pass(ttl - time.Second)
	s.that(s.try.Op == 0, "waiting for the oldest")
	s.pass(2 * time.Second)
	hears(arbiter.Verdict{Kind: arbiter.Undecided})
	s.that(s.try.Op > 0 && s.try.Lease == arbiter.Majority && !s.gate.Open, "asking, and shut")
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Held})
	s.that(s.gate.Open && s.said.Members == 3 && s.gave == 0, "open, and saying how many there are")
	hears(arbiter.Verdict{Kind: arbiter.Whole, Members: 3})
	s.that(s.gate.Open && s.gave == s.try.Op, "open, without the lease")
}

// The oldest member learns from another one how many members there are.
func TestCore_AnOldestWithoutTheStoreIsToldTheNumber(t *testing.T) {
	s := newStage(t, 2)
	s.sees("me", "new", "newest")
	s.step(arbiter.Tried{Op: s.try.Op, Result: arbiter.Unknown})
	s.that(!s.gate.Open && s.said.Members == 0, "shut")
	s.step(arbiter.Heard{From: "new", Verdict: arbiter.Verdict{Kind: arbiter.Pending, Members: 3}})
	s.that(s.gate.Open && s.said.Members == 3, "open, and saying how many there are")
}

// Members that are only assumed to exist are not missing when others leave in order.
func TestCore_MembersLeaveJustAfterTheBeginning(t *testing.T) {
	s := newStage(t, 3)
	s.whole("me", "new", "newest")
	s.step(arbiter.Heard{From: "newest", Verdict: arbiter.Verdict{Kind: arbiter.Leaving, Members: 5}})
	s.sees("me", "new")
	s.that(s.gate.Open && s.said.Members == 2, "open with two of two")
	s.sees("me")
	s.step(arbiter.Heard{From: "new", Verdict: arbiter.Verdict{Kind: arbiter.Leaving, Members: 2}})
	s.that(s.gate.Open && s.said.Kind == arbiter.Whole, "open alone")
	if here, all := s.core.Counts(); here != 1 || all != 1 {
		t.Errorf("%d of %d", here, all)
	}
}

// So it is if they leave while the oldest member acquires the lease.
func TestCore_MembersLeaveDuringTheBeginning(t *testing.T) {
	s := newStage(t, 3)
	s.sees("me", "new", "newest")
	s.step(arbiter.Heard{From: "newest", Verdict: arbiter.Verdict{Kind: arbiter.Leaving}})
	s.begins()
	s.sees("me", "new")
	s.that(s.gate.Open && s.said.Members == 2, "open with two of two")
}

// The oldest member that leaves just after the beginning says how many members it has seen.
func TestCore_TheOldestLeavesJustAfterTheBeginning(t *testing.T) {
	old := newStage(t, 3)
	old.whole("me", "new", "newest")
	old.step(arbiter.Leave{})
	old.that(old.said.Kind == arbiter.Leaving && old.said.Members == 3, "leaving, of three")
	s := newStage(t, 3)
	s.sees("old", "me", "new")
	s.step(arbiter.Heard{From: "old", Verdict: arbiter.Verdict{Kind: arbiter.Whole, Members: 5}})
	s.step(arbiter.Heard{From: "old", Verdict: old.said})
	s.sees("me", "new")
	if here, all := s.core.Counts(); here != 2 || all != 2 || !s.gate.Open {
		t.Errorf("%d of %d, %v", here, all, s.gate)
	}
}
