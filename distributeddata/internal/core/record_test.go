package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
)

// Scripts in which the membership is a record in a store [M9]. They have these steps in addition to
// those of a script:
//
//	serve X      the store answers what X asks, and what it asks then
//	lose X       the store does what X asks, but the answer is lost
//	fail X       the store does not do what X asks
//	alone X      X begins, and sees no other member
//
// No other step reaches the store.
type recorded struct {
	*script
	text    []byte
	version int
	asked   map[string]Effect // in flight
	down    bool
}

var errDown = errors.New("down")

func newRecorded(t *testing.T, names string) *recorded {
	r := &recorded{asked: map[string]Effect{}}
	r.script = scriptIn(newLabOf(t, 1))
	r.stored = func(at string, e Effect) {
		require.NotContains(t, r.asked, at, "one call at a time")
		r.asked[at] = e
	}
	for n := range strings.SplitSeq(names, "") {
		if n != "" {
			r.play("alone " + n)
		}
	}
	if names != "" {
		r.together(names)
	}
	return r
}

// together makes members see each other, and delivers everything until all are ready.
func (r *recorded) together(names string) {
	r.t.Helper()
	for n := range strings.SplitSeq(names, "") {
		r.see(n, names)
	}
	r.talk(40)
	for n := range strings.SplitSeq(names, "") {
		require.True(r.t, r.cores[n].Ready(), n)
	}
}

// talk is calm with a store that answers, unless it is down.
func (r *recorded) talk(times int) {
	r.t.Helper()
	for range times {
		r.calm(1)
		for _, n := range r.order {
			r.serve(n)
		}
	}
}

func (r *recorded) play(text string) {
	r.t.Helper()
	for step := range strings.SplitSeq(text, ";") {
		words := append(strings.Fields(step), "", "")
		switch words[0] {
		case "serve":
			r.step(words[1], Wake{})
			r.serve(words[1])
		case "lose":
			r.carryOut(words[1], true)
		case "fail":
			r.fail(words[1])
		case "alone":
			r.start(words[1])
			r.cores[words[1]].cfg.BeatPeers = 8
			if !slices.Contains(r.order, words[1]) {
				r.order = append(r.order, words[1])
			}
			r.see(words[1], "")
		default:
			r.script.play(step)
		}
	}
}

// serve answers what a member asks of the store until it asks nothing more.
func (r *recorded) serve(name string) {
	for range 20 {
		if r.asked[name] == nil {
			return
		}
		if r.down {
			r.fail(name)
			return
		}
		r.carryOut(name, false)
	}
	r.t.Fatalf("%s asks the store again and again", name)
}

func (r *recorded) carryOut(name string, lost bool) {
	r.t.Helper()
	e := r.asked[name]
	delete(r.asked, name)
	switch e := e.(type) {
	case LoadRecord:
		r.step(name, RecordLoaded{ID: e.ID, Record: r.text, Version: r.mark()})
	case SwapRecord:
		answer := RecordSwapped{ID: e.ID, Swapped: e.Old == r.mark()}
		if answer.Swapped {
			r.text = e.Next
			r.version++
			answer.Version = r.mark()
		}
		if lost {
			answer = RecordSwapped{ID: e.ID, Err: errDown}
		}
		r.step(name, answer)
	default:
		r.t.Fatalf("%s asks nothing of the store", name)
	}
}

func (r *recorded) fail(name string) {
	switch e := r.asked[name].(type) {
	case LoadRecord:
		delete(r.asked, name)
		r.step(name, RecordLoaded{ID: e.ID, Err: errDown})
	case SwapRecord:
		delete(r.asked, name)
		r.step(name, RecordSwapped{ID: e.ID, Err: errDown})
	}
}

func (r *recorded) mark() string {
	if r.version == 0 {
		return ""
	}
	return fmt.Sprint("v", r.version)
}

// says returns the content of the record, as "a in, b gone".
func (r *recorded) says() string {
	r.t.Helper()
	m, err := quorum.ReadRecord(r.text)
	require.NoError(r.t, err)
	var out []string
	for _, x := range m.Members() {
		out = append(out, x.Name+" "+x.Rank.String())
	}
	return strings.Join(out, ", ")
}

// troubles returns what a member has reported about the record, the last first.
func (r *recorded) troubles(name string) (out []string) {
	for _, a := range r.alarms {
		if e, ok := a.what.(Troubled); ok && a.at == name {
			if e.Err == nil {
				out = append([]string{"well"}, out...)
			} else {
				out = append([]string{e.Err.Error()}, out...)
			}
		}
	}
	return out
}

// Without a record, three members that see no other would each begin a cluster of one.
func TestRecord_ThoseThatBeginApartAreOneCluster(t *testing.T) {
	r := newRecorded(t, "")
	r.play("alone a; alone b; alone c")
	for range 4 { // one step at a time, so that they overtake each other
		for _, n := range r.order {
			r.step(n, Wake{})
			if r.asked[n] != nil {
				r.carryOut(n, false)
			}
		}
	}
	require.True(t, r.cores["a"].Ready(), "it founds the cluster alone")
	require.False(t, r.cores["b"].Ready() || r.cores["c"].Ready())
	require.Equal(t, "a in", r.says())
	r.play("write a")
	r.stands(1, 0)
	r.together("abc")
	require.Equal(t, "a in, b in, c in", r.says())
	for _, n := range r.order {
		require.Equal(t, 3, r.cores[n].members.Size())
	}
	r.play("read b; ask b c; read c; meet c a; meet b a")
	r.talk(10)
	r.stands(1, 2)
}

// The record is needed only to start, to leave and to forget.
func TestRecord_ARunningClusterGoesOnWithoutTheStore(t *testing.T) {
	r := newRecorded(t, "abc")
	r.down = true
	r.play("write a; meet a b; meet a c; read b; ask b c; meet b a; crash c")
	r.talk(40)
	r.stands(1, 1)
	r.play("write b")
	r.talk(10)
	r.stands(2, 1)
	require.Empty(t, r.troubles("a"), "nothing was asked")

	r.begin("c")
	r.talk(60)
	require.False(t, r.cores["c"].Ready(), "it has no place yet")
	require.Contains(t, r.troubles("c")[0], "down")
	require.Contains(t, r.cores["c"].QuorumStatus().Trouble, "down")

	r.down = false
	r.talk(40)
	require.True(t, r.cores["c"].Ready())
	require.Equal(t, "well", r.troubles("c")[0])
	require.Empty(t, r.cores["c"].QuorumStatus().Trouble)
	require.Equal(t, 3, r.cores["a"].members.Size(), "it has taken its former place")
}

// A swap whose answer is lost has been carried out all the same. A member that has its place by
// such a swap is still a new member: it counts when a majority has recorded it [M3].
func TestRecord_AnAnswerThatIsLostLeavesTheMemberNew(t *testing.T) {
	r := newRecorded(t, "abcd")
	r.begin("e")
	for range 40 {
		r.calm(1)
		if _, swaps := r.asked["e"].(SwapRecord); swaps {
			break
		}
		if r.asked["e"] != nil {
			r.carryOut("e", false)
		}
	}
	r.take(all)
	r.play("lose e")
	require.Equal(t, "a in, b in, c in, d in, e in", r.says())
	r.now = r.now.Add(2 * time.Second)
	r.play("serve e; know e a; know a b; meet e a; meet e b")
	require.True(t, r.cores["e"].members.entering)
	require.False(t, r.cores["e"].Ready(), "two of four are no majority")
	r.play("know e c; meet e c")
	require.True(t, r.cores["e"].Ready())
	r.end()
}

// Two members write at once: one of them finds another version, and its change comes after the
// other.
func TestRecord_OfTwoChangesOneComesAfterTheOther(t *testing.T) {
	r := newRecorded(t, "ab")
	r.begin("c")
	r.begin("d")
	r.talk(60)
	require.Equal(t, "a in, b in, c in, d in", r.says())
	r.end()
}

// [M5] The last member that leaves removes itself from the record, so that the next one founds the
// cluster anew.
func TestRecord_TheLastOneLeavesAnEmptyRecord(t *testing.T) {
	r := newRecorded(t, "ab")
	r.play("leave a")
	r.talk(20)
	require.Equal(t, "a gone, b in", r.says())
	r.cores["a"] = nil
	r.see("b", "")
	r.play("leave b")
	r.talk(20)
	require.Equal(t, "a gone, b gone", r.says())
	for id, d := range r.done {
		require.Nil(t, d.Short, id)
	}
	r.cores["b"] = nil
	r.play("alone c; serve c")
	require.True(t, r.cores["c"].Ready())
	require.Equal(t, "a gone, b gone, c in", r.says())
}

// The data of the last member is handed over to those that wait for a place.
func TestRecord_LastMemberHandsOverToNewMembers(t *testing.T) {
	r := newRecorded(t, "a")
	r.play("write a")
	r.stands(1, 0)
	r.begin("b")
	r.play("leave a; serve a; serve b")
	require.NotContains(t, r.done, r.id, "b has not got it yet")
	r.talk(60)
	r.cores["a"] = nil
	r.see("b", "")
	r.talk(60)
	require.True(t, r.cores["b"].Ready())
	r.shows("b", "s/w1=1\n")
}

// [M9] b has all that the last member holds, but c waits for a place too, and may be the next to
// count. What the last one does while it leaves is part of that.
func TestRecord_LastMemberHandsOverToAllThatWait(t *testing.T) {
	r := newRecorded(t, "a")
	r.begin("b")
	r.play("write a; meet a b; leave a; meet a b")
	require.Zero(t, r.cores["a"].Uncopied())
	require.IsType(t, SwapRecord{}, r.asked["a"])
	r.begin("c")
	r.play("write a; meet a b; serve a; meet a b; serve a")
	r.stands(2, 0)
	require.Zero(t, r.cores["a"].Uncopied())
	require.Equal(t, "a going", r.says())
	require.NotContains(t, r.done, uint64(2))
	r.talk(60)
	r.succeeded(2)
	for _, n := range []string{"b", "c"} {
		r.shows(n, "s/w1=1\ns/w2=1\n")
	}
}

// Leaving waits for the store, until its deadline.
func TestRecord_ALeaverIsCountedUntilTheStoreAnswers(t *testing.T) {
	r := newRecorded(t, "abc")
	r.down = true
	r.id++
	r.step("a", Drain{ID: r.id, Leave: true, Deadline: r.now.Add(10 * time.Second)})
	r.talk(60)
	require.NotNil(t, r.done[r.id].Short)
	require.True(t, r.done[r.id].Short.Handed)
	require.Equal(t, 3, r.cores["b"].members.Size())
}

// [M5] b dies while it is going. a alone is no majority of the two, but one of every quorum.
func TestRecord_OneOfTwoFinishesTheRemovalOfTheOther(t *testing.T) {
	r := newRecorded(t, "ab")
	r.step("b", Drain{ID: 70, Leave: true, Deadline: r.now.Add(time.Hour)})
	for i := 0; i < 20 && r.says() == "a in, b in"; i++ {
		r.calm(1)
		if r.asked["b"] != nil {
			r.carryOut("b", false)
		}
	}
	r.calm(1)
	require.Equal(t, quorum.Going, r.cores["a"].members.Of("b").Rank)
	require.Equal(t, "a in, b going", r.says())
	r.play("crash b")
	delete(r.asked, "b")
	r.see("a", "")
	r.talk(80)
	require.Equal(t, "a in, b gone", r.says())
	require.True(t, r.cores["a"].Ready())
}

// None stays to forget a member when all leave together.
func TestRecord_OfMembersThatLeaveTogetherNoneIsHeldUp(t *testing.T) {
	for stays, all := range map[string]bool{"": true, "c": false} {
		r := newRecorded(t, "abc")
		r.down = true // so that none is forgotten
		for _, name := range []string{"a", "b", "c"} {
			if name != stays {
				r.id++
				r.step(name, Drain{ID: r.id, Leave: true, Deadline: r.now.Add(10 * time.Second)})
			}
		}
		r.talk(60)
		require.True(t, r.done[1].Short.Handed)
		require.Equal(t, all, r.done[1].Short.AllLeave, "stays: %q", stays)
	}
}

// [M7] On both sides of a partition members are removed by force. The record lets one side do so;
// the other one finds itself removed.
func TestRecord_ForceWorksOnOneSide(t *testing.T) {
	r := newRecorded(t, "ab")
	r.now = r.now.Add(time.Minute)
	first, second := r.forget("a", "b", true), r.forget("b", "a", true)
	r.play("serve a; serve b")
	require.Nil(t, r.done[first].Short)
	require.True(t, r.cores["a"].Ready())
	require.NotNil(t, r.done[second].Short, "b has no say any more")
	require.False(t, r.cores["b"].Ready(), "it enters anew, and a has to admit it")
	require.Equal(t, "a in, b gone", r.says(), "it is refilled first")
	r.talk(20)
	require.Equal(t, "a in, b in", r.says())
	r.end()
}

// A member without a stable name that crashed is forgotten by the others, through the record.
func TestRecord_ForgetNeedsAMajorityStill(t *testing.T) {
	r := newRecorded(t, "abc")
	r.play("write a; meet a c; crash c; forget a c; meet a b; serve a; know a b; meet a b; serve a; know a b")
	r.stands(1, 0)
	require.Equal(t, "a in, b in, c gone", r.says())
	r.play("write a; meet a b")
	r.stands(2, 0)
	r.play("crash b; forget a b; serve a; serve a")
	r.talk(20)
	require.Equal(t, "a in, b in, c gone", r.says(), "one of two is no majority")
	r.forget("a", "b", true)
	r.play("serve a")
	require.Contains(t, r.done, r.id)
	require.Equal(t, "a in, b gone, c gone", r.says())
}

// The scripts of the lattice also hold with a record.
func TestRecord_TwoJoinsInTwoHalves(t *testing.T) {
	r := newRecorded(t, "abcd")
	r.play("start e; meet e a; serve e; know e a; know a b; meet e a; meet e b")
	r.play("start f; meet f c; serve f; know f c; know c d; meet f c; meet f d")
	r.play("write a; meet a b; meet a e; read c; ask c d; ask c f")
	r.stands(0, 0)
	r.talk(60)
	r.end()
}

// An unusable record is reported, and admits no member. Running members continue.
func TestRecord_BadOnesAreNamed(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(r *recorded)
	}{
		{"damaged", "damaged record of", func(r *recorded) {
			r.text = []byte(strings.Replace(string(r.text), `"name":"a"`, `"name":"z"`, 1))
		}},
		{"changed", "its checksum does not match", func(r *recorded) {
			r.text = []byte(strings.Replace(string(r.text), `"epoch":2`, `"epoch":9`, 1))
		}},
		{"cut off", "damaged record of 40 bytes", func(r *recorded) { r.text = r.text[:40] }},
		{"empty", "damaged record of 0 bytes", func(r *recorded) { r.text = nil }},
		{"of another version", "the record has format 2; this version of the module reads format 1",
			func(r *recorded) {
				r.text = []byte(strings.Replace(string(r.text), `"concord":1`, `"concord":2`, 1))
			}},
		{"too large", "over the limit of 131072", func(r *recorded) {
			r.text = append(r.text, make([]byte, quorum.MaxRecord)...)
		}},
		{"of another cluster", "it belongs to another cluster", func(r *recorded) {
			m, err := quorum.ReadRecord(r.text)
			require.NoError(t, err)
			m.Cluster++
			m.Epoch += 7
			r.text, err = m.Text()
			require.NoError(t, err)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecorded(t, "ab")
			good := slices.Clone(r.text)
			c.spoil(r)
			r.version++
			bad := slices.Clone(r.text)
			r.begin("c")
			r.talk(40)
			require.False(t, r.cores["c"].Ready())
			require.Contains(t, r.troubles("c")[0], c.want)
			require.Contains(t, r.cores["c"].QuorumStatus().Trouble, c.want)
			require.Equal(t, bad, r.text, "nothing is written over it")
			r.play("write a; meet a b")
			r.stands(1, 0)
			r.text = good
			r.version++
			r.talk(40)
			require.True(t, r.cores["c"].Ready())
			require.Equal(t, "well", r.troubles("c")[0])
		})
	}
}

// A store that lost writes returns an older record. The next change writes what the members
// remember.
func TestRecord_OneThatWentBackIsWrittenAgain(t *testing.T) {
	r := newRecorded(t, "ab")
	old := slices.Clone(r.text)
	r.begin("c")
	r.talk(40)
	require.Equal(t, "a in, b in, c in", r.says())
	r.text = old
	r.version++
	r.begin("d")
	r.talk(4)
	require.Contains(t, r.troubles("d"),
		"the record went back to epoch 2 from the remembered epoch 3: the store lost writes, or an old copy was "+
			"restored; the next change writes it again")
	r.talk(40)
	require.Equal(t, "a in, b in, c in, d in", r.says())
	require.True(t, r.cores["d"].Ready())
	r.end()
}

func TestRecord_OneThatWasRemovedIsWrittenAgain(t *testing.T) {
	r := newRecorded(t, "abc")
	r.text, r.version = nil, 0
	r.begin("d")
	r.talk(40)
	require.Contains(t, r.troubles("d"),
		"the record was removed: the next change writes it again; epoch 3 is remembered")
	require.Equal(t, "a in, b in, c in, d in", r.says())
	require.Equal(t, 4, r.cores["a"].members.Size())
	r.end()
}

// A member with a record and one without form no cluster.
func TestRecord_MixedConfigurationsDoNotMix(t *testing.T) {
	r := newRecorded(t, "a")
	hook := r.stored
	r.stored = nil
	r.begin("b")
	r.stored = hook
	r.talk(20)
	require.Contains(t, r.troubles("b")[0],
		`member "a" at at a: its membership is a record in a store`)
	require.False(t, r.cores["b"].Ready(), "it does not begin a cluster of its own beside that of a")
	require.Equal(t, 1, r.cores["a"].members.Size())
}

// The answer to a call from before a step that panicked, or a duplicate one, is ignored.
func TestRecord_OnlyTheCallUnderWayIsAnswered(t *testing.T) {
	r := newRecorded(t, "")
	r.play("alone a")
	load := r.asked["a"].(LoadRecord)
	r.carryOut("a", false)
	swap := r.asked["a"].(SwapRecord)
	r.step("a", RecordLoaded{ID: load.ID, Record: []byte("x"), Version: "v9"})
	r.step("a", RecordSwapped{ID: load.ID, Swapped: true, Version: "v9"})
	require.False(t, r.cores["a"].Ready())
	require.Empty(t, r.troubles("a"))
	r.carryOut("a", false)
	require.True(t, r.cores["a"].Ready())
	r.step("a", RecordSwapped{ID: swap.ID, Err: errDown})
	require.Empty(t, r.troubles("a"))
}
