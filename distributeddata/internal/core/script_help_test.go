package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/wire"
)

// A script is a history of a few members in which each exchange between two of them is chosen by
// hand, and every other message is lost. Its steps, separated by semicolons:
//
//	write X      X begins a write at a majority
//	read X       X begins a read at a majority
//	leave X      X begins to leave in order
//	forget X Y   X is told to forget Y, which it has not heard for a while
//	crash X      X ends
//	start X      X begins, empty
//	view X YZ…   X sees only these
//	push X Y     what X has just pushed to Y arrives, and so does the acknowledgement
//	tell X Y     Y learns what X remembers of the members, and nothing more
//	know X Y     both learn what the other remembers of the members, and nothing more
//	ask X Y      both exchange heartbeats, questions and answers, and no data
//	meet X Y     both exchange everything but what they remember of the members
//
// After each step the promise is checked by reading values: a majority read that has ended shows
// every majority write that was acknowledged when the read began.
type script struct {
	*lab
	writes map[uint64]string          // elements of the writes at a majority
	reads  map[uint64]map[string]bool // in flight, with what they must show
	reader map[uint64]string
	ended  int // number of ended reads
}

// newScript returns a script of members that count each other and have nothing left to send.
func newScript(t *testing.T, names string) *script {
	s := scriptIn(newLabOf(t, 1, strings.Split(names, "")...))
	for _, n := range s.order {
		require.True(t, s.cores[n].Ready(), n)
		s.hurry(n)
		s.see(n, names)
	}
	s.calm(20)
	return s
}

// scriptIn returns a script of the members of a lab. So that the script can choose their partners,
// members give up unanswered requests, and have asked every member, within a heartbeat interval.
func scriptIn(l *lab) *script {
	l.patience = patient
	return &script{lab: l, writes: map[uint64]string{}, reads: map[uint64]map[string]bool{},
		reader: map[uint64]string{}}
}

// newBeginning starts members that see each other and have sent nothing yet.
func newBeginning(t *testing.T, names string) *script {
	s := scriptIn(emptyLab(t, 0, strings.Split(names, "")))
	for _, n := range s.order {
		s.start(n)
	}
	for _, n := range s.order {
		s.see(n, names)
	}
	return s
}

const patient = 100 * time.Millisecond

func (s *script) play(text string) {
	s.t.Helper()
	for step := range strings.SplitSeq(text, ";") {
		words := append(strings.Fields(step), "", "")
		s.do(words[0], words[1], words[2])
		if words[0] != "write" && words[0] != "push" {
			s.take(all) // lost
		}
		s.check(strings.TrimSpace(step))
	}
}

func (s *script) do(verb, x, y string) {
	s.t.Helper()
	switch verb {
	case "write":
		element := fmt.Sprint("w", len(s.writes)+1)
		s.writes[s.update(x, majority, add("s", element))] = element
	case "read":
		s.beginRead(x)
	case "leave":
		s.leave(x)
	case "forget":
		s.now = s.now.Add(20 * time.Second)
		s.forget(x, y, false)
	case "crash":
		s.cores[x] = nil
	case "start":
		s.begin(x)
	case "view":
		s.see(x, y)
	case "push":
		s.deliver(pair(x, y, wire.ReplicatorPush, wire.ReplicatorAck))
	case "tell":
		s.exchange(x, y, func(m mail) bool {
			beat := m.send.Manifest == wire.ReplicatorBeat
			return beat && m.from == y && m.to == x || m.send.Manifest == wire.ReplicatorMembers &&
				m.from == x && m.to == y
		})
	case "know":
		s.exchange(x, y, pair(x, y, wire.ReplicatorBeat, wire.ReplicatorMembers))
	case "ask":
		s.exchange(x, y, pair(x, y, wire.ReplicatorBeat, wire.ReplicatorProbe,
			wire.ReplicatorProbeReply))
	case "meet":
		both := pair(x, y)
		s.exchange(x, y, func(m mail) bool {
			return both(m) && m.send.Manifest != wire.ReplicatorMembers
		})
	default:
		s.t.Fatalf("unknown step %q", verb)
	}
}

// pair matches mail between two members, of some kinds or of any.
func pair(x, y string, kinds ...wire.Manifest) func(mail) bool {
	return func(m mail) bool {
		return (m.from == x && m.to == y || m.from == y && m.to == x) &&
			(len(kinds) == 0 || slices.Contains(kinds, m.send.Manifest))
	}
}

// exchange lets two members run for slightly longer than a heartbeat interval. Of what they send
// only the matching mail arrives.
func (s *script) exchange(x, y string, match func(mail) bool) {
	for range 14 {
		s.now = s.now.Add(patient + patient/10)
		for _, n := range []string{x, y} {
			s.step(n, Wake{})
			s.deliver(match)
		}
		s.take(all)
	}
}

// begin starts a member that can talk to all running members.
func (s *script) begin(name string) {
	s.start(name)
	s.enter(name)
}

func (s *script) beginRead(name string) {
	s.id++
	s.reads[s.id], s.reader[s.id] = s.acked(), name
	s.step(name, Read{ID: s.id, Level: majority, Deadline: s.now.Add(time.Hour)})
}

// acked returns the elements of the acknowledged writes.
func (s *script) acked() map[string]bool {
	out := map[string]bool{}
	for id, element := range s.writes {
		if d, ok := s.done[id]; ok && d.Err == nil && d.Short == nil {
			out[element] = true
		}
	}
	return out
}

// check asserts that the ended reads show what they must.
func (s *script) check(step string) {
	s.t.Helper()
	for id := range s.reads {
		require.Nil(s.t, s.done[id].Short)
		require.NoError(s.t, s.done[id].Err)
	}
	require.Empty(s.t, s.misses(), "after %q", step)
}

// misses ends the reads that are done, and says what one that was not short misses.
func (s *script) misses() (what string) {
	for id, must := range s.reads {
		d, ok := s.done[id]
		if !ok {
			continue
		}
		delete(s.reads, id)
		if d.Short != nil || d.Err != nil {
			continue
		}
		s.ended++
		got := s.text(s.reader[id])
		for element := range must {
			if !containsLine(got, "s/"+element+"=1") {
				what = fmt.Sprintf("a majority read at %s misses %s, which a majority had "+
					"acknowledged; it shows %q", s.reader[id], element, got)
			}
		}
	}
	return what
}

// calm lets all running members talk without losses, for a number of quarters of a heartbeat
// interval.
func (s *script) calm(times int) {
	s.t.Helper()
	s.talk(times, all)
}

// talk is calm, but only the matching mail arrives.
func (s *script) talk(times int, match func(mail) bool) {
	s.t.Helper()
	for range times {
		s.wake(250*time.Millisecond, s.order...)
		s.deliver(match)
		s.take(all)
		s.check("a while without faults")
	}
}

// end asserts that the history can continue: without faults all members that run and stay become
// ready, pending writes are acknowledged, pending reads end, and every member reads all of it.
func (s *script) end() {
	s.t.Helper()
	s.seeAll(s.order...)
	s.calm(80)
	for id, element := range s.writes {
		require.Contains(s.t, s.done, id, "%s waits for ever", element)
	}
	for _, n := range s.order {
		c := s.cores[n]
		if c == nil || c.members.withdrawn && c.members.Own().Rank == quorum.Gone {
			continue // it has ended, or left
		}
		require.True(s.t, c.Ready(), n)
		s.beginRead(n)
	}
	s.calm(20)
	require.Empty(s.t, s.reads, "reads wait for ever")
	require.Equal(s.t, len(s.writes), len(s.acked()))
}

// stands asserts how many writes have been acknowledged and how many reads have ended.
func (s *script) stands(acked, ended int) {
	s.t.Helper()
	require.Len(s.t, s.acked(), acked)
	require.Equal(s.t, ended, s.ended, "reads")
}

func containsLine(text, line string) bool {
	return slices.Contains(strings.Split(text, "\n"), line)
}
