package core

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
)

// Each of these histories shows why a part of the rule in section 3 of docs/replication.md exists:
// without that part a majority read misses a write that a majority acknowledged. lab/mutants
// removes each part.

// [M1] c still counts three, beside a cluster of five: for c, a's answer is one of two; for the
// others, one of five.
func TestScript_AnswersOfThoseThatKnowMore(t *testing.T) {
	s := newScript(t, "abc")
	s.play("start d; know d a; meet d a; know d a; know a b; meet d a; meet d b; know d a; know a b")
	s.play("start e; know e a; meet e a; know e a; know a b; know a d; meet e a; meet e b; meet e d; know e a; know a b; know a d")
	s.play("write c; meet c a; read d; ask d b; ask d e")
	s.stands(0, 1)
	s.end()
}

// [M1] a forgets d and e with the votes of b and c, which have not heard of that: c, d and e still
// count five.
func TestScript_AnswersOfThoseThatKnowLess(t *testing.T) {
	s := newScript(t, "abcde")
	s.play("forget a d; meet a b; meet a c; meet a b; meet a c; forget a e; meet a b; meet a c; meet a b; meet a c")
	s.play("write a; push a b; read c; ask c d; ask c e")
	s.end()
}

// [M1] b has acknowledged, and starts again, empty, before a has its majority.
const replaced = "write a; push a b; crash b; start b; know b c; know c d; know c e; meet b c; know b c; know b d; know b e; " +
	"meet b c; meet b d; meet b e; "

func TestScript_AnswersFromBeforeAChange(t *testing.T) {
	s := newScript(t, "abcde")
	s.play(replaced + "know c a; meet a c; read b; ask b d; ask b e")
	s.stands(0, 1)
	s.end()
}

// [M2] As before, but a itself has not heard of the new b.
func TestScript_IncarnationsAreRemembered(t *testing.T) {
	s := newScript(t, "abcde")
	s.play(replaced + "meet a c; read b; ask b d; ask b e")
	s.stands(0, 1)
	s.end()
}

// [M3] Of four, two admit e and the other two f: {a, b, e} and {c, d, f} are majorities of five.
func TestScript_HalfOfAnEvenNumberAdmitsNobody(t *testing.T) {
	s := newScript(t, "abcd")
	s.play("start e; know e a; meet e a; know e a; know a b; meet e a; meet e b")
	s.play("start f; know f c; meet f c; know f c; know c d; meet f c; meet f d")
	s.play("write a; meet a b; meet a e; read c; ask c d; ask c f")
	s.stands(0, 0)
	s.end()
}

// [M3] a fills d and e and never hears that they have entered; only c does. Then {c, d, e} are
// three of five and, as a and b count, {a, b, g} three of four.
func TestScript_AnAnswerFromBeforeTheEntryAdmitsNobody(t *testing.T) {
	s := newScript(t, "abc")
	s.play("start d; know d a; meet d a; know d c; meet d c")
	s.play("start e; know e a; meet e a; know e c; know c d; meet e c; meet e d; know e c; know e d")
	s.play("write c; meet c d; meet c e; start g; know g a; meet g a; know g a; know a b; meet g a; meet g b; read a; ask a b; ask a g")
	s.stands(0, 1)
	s.end()
}

// [M3] c alone admits d and e: {c, d, e} are three of five.
func TestScript_NewMemberCountsWhenAMajorityHasRecordedIt(t *testing.T) {
	s := newScript(t, "abc")
	s.play("write a; meet a b")
	s.stands(1, 0)
	s.play("start d; know d c; meet d c; know d c; meet d c; start e; know e c; meet e c; know e c; meet e c")
	s.play("know c d; know c e; read c; ask c d; ask c e")
	s.stands(1, 0)
	s.end()
}

// [M3] d and e have lost what they acknowledged. If f does not come to them as well, two of the
// five admit it, and with f, d is filled by three that lack the write.
func TestScript_NewMemberComesToTheRestartedToo(t *testing.T) {
	s := newScript(t, "abcde")
	s.play("write c; meet c d; meet c e")
	s.stands(1, 0)
	s.play("crash d; start d; crash e; start e; know d a; know e a; meet d a; meet e a; know d a; know e a; know a b; know a d; know a e")
	s.play("start f; know f a; meet f a; know f a; know a b; know a d; know a e; meet f d; meet f e; meet f a; meet f b")
	s.play("meet d a; meet d b; meet d f; meet e a; meet e b; meet e f; read a; ask a b; ask a f; ask a d")
	s.stands(1, 0)
	s.end()
}

// [M4] a and b are going, and have asked each other and c. They no longer acknowledge what e writes
// then.
func TestScript_GoingHasNoVote(t *testing.T) {
	s := newScript(t, "abcde")
	s.play("leave a; leave b; ask a c; ask a d; ask a e; ask b c; ask b d; ask b e")
	s.play("tell a c; tell b c; tell c a; tell c b; tell c d; tell c e; ask a b; ask a c; ask b c")
	s.play("write e; push e a; push e b; ask a d; ask b d; tell a c; tell b c; know c d; read c; ask c d")
	s.end()
}

// [M5] c alone forgets a and b.
func TestScript_GoneNeedsAMajority(t *testing.T) {
	s := newScript(t, "abc")
	s.play("write a; meet a b")
	s.stands(1, 0)
	s.play("forget c a; forget c b; read c")
	s.stands(1, 0)
	s.end()
}

// [M5] What a and b have acknowledged reaches c or d before they are gone: {c, d} are a majority of
// the three that stay.
func TestScript_WhoGoesHandsOver(t *testing.T) {
	s := newScript(t, "abcde")
	s.play("leave a; leave b; write e; push e a; push e b")
	s.stands(1, 0)
	s.play("ask a c; ask a d; ask a e; know a b; know a c; know a d; ask a c; ask a d; know a b; know a c; know a d")
	s.play("ask b c; ask b d; know b c; know b d; ask b c; ask b d; know b c; know b d; read c; ask c d")
	s.stands(1, 0)
	s.end()
}

// Views say which members can be reached, not how many count.
func TestScript_ViewsDecideNothing(t *testing.T) {
	s := newScript(t, "abcde")
	s.play("write a; meet a b; meet a c")
	s.stands(1, 0)
	s.play("view d ce; read d; ask d e")
	s.stands(1, 0)
	s.end()
}

// [M5] d, e and f are going at once, and hold with a what b and c lack. If they could confirm for
// each other that the remaining members have it, only a of {a, b, c} would have it.
func TestScript_ThoseThatGoKeepNothingForThoseThatStay(t *testing.T) {
	s := newScript(t, "abcdef")
	s.play("write a; push a d; push a e; push a f")
	s.stands(1, 0)
	near := []string{"a", "d", "e", "f"}
	marked := s.cores["a"].members.Memory
	for _, n := range near[1:] {
		m := marked.Of(n)
		m.Rank = quorum.Going
		marked = marked.With(m)
	}
	for _, n := range near {
		s.cores[n].cluster().recall(marked)
		s.see(n, "adef")
	}
	s.talk(40, func(m mail) bool {
		return slices.Contains(near, m.from) && slices.Contains(near, m.to)
	})
	for _, n := range near[1:] {
		require.Equal(t, quorum.Going, s.cores["a"].members.Of(n).Rank,
			"b and c lack what %s has", n)
	}
	s.end()
}

// [M4] Of those that have answered, only the ones count that stay, and are the same since.
func TestRemoval_CountsThoseThatStay(t *testing.T) {
	s := newScript(t, "abc")
	a, r := s.cores["a"], &removal{victim: "c"}
	for _, p := range a.peers {
		r.take(p, p.vector())
	}
	require.Len(t, r.answers, 2)
	require.Equal(t, 2, r.staying(a.calls()), "a and b")
	s.play("view a ab; view a abc") // nothing is known of this c yet
	require.Equal(t, 2, r.staying(a.calls()))
	s.play("view a ac; view a abc")
	require.Equal(t, 1, r.staying(a.calls()), "nor of this b")
}

// marks lets a member remember that another one is going.
func (c *Core) marks(name string) {
	m := c.members.Of(name)
	m.Rank = quorum.Going
	c.cluster().recall(c.members.With(m))
}

// [M4] While e is going, all that stay would agree that d goes too: two of a count of five would
// remain. d stays until e is gone.
func TestRemoval_OneAtATime(t *testing.T) {
	for _, another := range []bool{false, true} {
		s := newScript(t, "abcde")
		a, r := s.cores["a"], &removal{victim: "d"}
		if another {
			a.marks("e")
		}
		for _, p := range a.peers {
			if p.name != "e" { // all of them answer under this memory
				r.answers = append(r.answers, probed{p.ID, p.replica, p.vector()})
			}
		}
		r.progress(a.calls(), &group{Task: r})
		require.Equal(t, !another, a.members.Of("d").Rank == quorum.Going)
	}
}

// [M5] b was recorded by a and goes before it has ever counted: no quorum included it, so a alone
// completes its removal, whether or not b answers.
func TestRemoval_NeedsNoAnswerOfOneThatNeverCounted(t *testing.T) {
	for _, entering := range []bool{false, true} {
		s := newScript(t, "ab")
		a, r := s.cores["a"], &removal{victim: "b"}
		a.marks("b")
		a.peers[0].entering = entering
		r.progress(a.calls(), &group{Task: r})
		require.Equal(t, entering, r.brought)
	}
}

// [M3] c has been forgotten while it was cut off, and hears of that. If it entered before it has
// what it lacks, and ended then, one more member would be missing.
func TestScript_OneThatWasForgottenIsRefilledBeforeItEnters(t *testing.T) {
	s := newScript(t, "abc")
	s.play("forget a c; meet a b; know a b; meet a b; know a b; write a; meet a b")
	s.stands(1, 0)
	require.Equal(t, quorum.Gone, s.cores["a"].members.Of("c").Rank)
	s.play("know a c")
	require.Equal(t, quorum.Gone, s.cores["c"].members.Own().Rank, "it knows that it was forgotten")
	s.play("meet a c; know a c")
	require.Equal(t, quorum.In, s.cores["a"].members.Of("c").Rank)
	s.end()
}

// Two members have been told, by force, that the other one is gone. None counts when they meet, so
// each is filled by the other as it is, and they count again.
func TestScript_TwoThatForgotEachOtherCountAgain(t *testing.T) {
	s := newBeginning(t, "ab")
	s.calm(12)
	s.now = s.now.Add(20 * time.Second)
	for i, n := range []string{"a", "b"} {
		require.True(t, s.cores[n].Ready(), n)
		s.step(n, Forget{ID: uint64(70 + i), Member: s.order[1-i], Force: true})
	}
	s.take(all)
	s.calm(40)
	for _, n := range s.order {
		require.True(t, s.cores[n].Ready(), n)
		require.Equal(t, 2, s.cores[n].QuorumStatus().Counted)
	}
}
