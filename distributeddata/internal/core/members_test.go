package core

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// beginAs starts a process under the name of a member, or with a different MinMembers.
func (s *script) beginAs(process, member string, least int) {
	s.start(process)
	s.cores[process].runsAs(member, least)
	s.enter(process)
}

// runsAs changes the member that a core runs as, and its MinMembers.
func (c *Core) runsAs(member string, least int) {
	c.cfg.Member, c.cfg.MinMembers = member, least
	remembered := c.members.Memory
	c.members.Set = quorum.NewSet(member, least, c.cfg.Recorded)
	c.members.Memory = remembered
}

// raised returns the alarms of each process since the last call.
func (s *script) raised() (at map[string][]Effect) {
	at = map[string][]Effect{}
	for _, a := range s.alarms {
		at[a.at] = append(at[a.at], a.what)
	}
	s.alarms = nil
	return at
}

// [M2] Of two processes with one name the later counts. The earlier reports this once and no longer
// counts: its writes and reads require a majority of the other members.
func TestName_OfTwoProcessesTheLaterCounts(t *testing.T) {
	s := newScript(t, "abc")
	s.beginAs("x", "a", 1)
	s.calm(40)
	require.True(t, s.cores["x"].Ready())
	require.False(t, s.cores["a"].Ready())
	require.Equal(t, map[string][]Effect{"a": {DuplicateName{By: "at x"}}}, s.raised())
	require.True(t, s.cores["a"].QuorumStatus().DuplicateName)
	require.False(t, s.cores["x"].QuorumStatus().DuplicateName)
	require.Equal(t, 3, s.cores["b"].QuorumStatus().Counted)

	s.play("write x; meet x b")
	s.stands(1, 0)
	s.play("write a; read a; meet a b")
	s.stands(1, 0) // of the three, b alone
	s.play("meet a c")
	s.stands(2, 1)
	s.calm(40)
	require.False(t, s.cores["a"].Ready(), "there is no way back while it runs")
	require.Empty(t, s.raised())
}

// [M2] When the later of two processes with one name has died, the earlier takes the place again
// after a while, under another number. It counts once the counting members have sent it what the
// other process acknowledged. MinMembers keeps the others from forgetting the member.
func TestName_TheEarlierCountsAgainWhenTheLaterIsLongGone(t *testing.T) {
	s := newScript(t, "abc")
	for _, n := range s.order {
		s.cores[n].runsAs(n, 3)
	}
	s.beginAs("x", "a", 3)
	s.calm(40)
	s.raised()
	s.play("write x; meet x b")
	s.stands(1, 0)
	s.cores["x"] = nil
	for _, n := range []string{"a", "b", "c"} {
		s.see(n, "abc")
	}
	s.calm(4 * (duplicateBeats - 10))
	require.False(t, s.cores["a"].Ready(), "x may be back yet")
	require.True(t, s.cores["a"].QuorumStatus().DuplicateName)
	s.calm(4 * 20)
	require.True(t, s.cores["a"].Ready())
	require.False(t, s.cores["a"].QuorumStatus().DuplicateName)
	require.Equal(t, 3, s.cores["b"].QuorumStatus().Counted)
	require.Empty(t, s.raised())
	s.play("read a; ask a c")
	s.stands(1, 1) // it sees the write of x
	s.play("write a; meet a c")
	s.stands(2, 1)
	s.end()
}

// Two processes that run under one name and do not see each other take the place from each other
// ever more rarely.
func TestName_DuplicatesTakeTurnsEverMoreRarely(t *testing.T) {
	s := newScript(t, "abc")
	s.beginAs("x", "a", 1)
	s.see("a", "abc")
	s.see("x", "xbc")
	turns := 0
	number := s.cores["b"].members.Of("a").Inc.Number
	for range 20 * duplicateBeats {
		s.calm(4)
		if n := s.cores["b"].members.Of("a").Inc.Number; n != number {
			turns, number = turns+1, n
		}
	}
	require.Greater(t, turns, 2)
	require.Less(t, turns, 9, "each waits twice as long each time")
	require.NotEqual(t, s.cores["a"].Ready(), s.cores["x"].Ready(), "one of the two counts")
}

// [M2] A process that has its place but has not counted yet is paused. Another process takes its
// place and ends, and the first one resumes. The other members treat it as a former one, so it must
// start over: otherwise it would never be filled and never count.
func TestName_RejoinsWhenTheLaterDuplicateIsGone(t *testing.T) {
	s := newBeginning(t, "abc")
	for _, kind := range []wire.Manifest{wire.ReplicatorBeat, wire.ReplicatorMembers} {
		s.talk(3, func(m mail) bool { return m.send.Manifest == kind })
	}
	first := s.cores["a"]
	require.Equal(t, quorum.Joining, first.members.Own().Rank)
	require.Equal(t, first.Replica(), first.members.Own().Inc.Replica)

	s.start("a")
	s.see("a", "abc")
	s.calm(40)
	require.True(t, s.cores["a"].Ready())
	s.play("write a; meet a b")
	s.stands(1, 0)

	s.cores["a"] = first
	s.calm(60)
	require.True(t, first.Ready())
	require.False(t, first.QuorumStatus().DuplicateName)
	s.play("read a; ask a c")
	s.stands(1, 1)
	s.end()
}

// [M2] The same for a process that has counted since the cluster began, so that it was never
// filled, and beside another that has restarted since.
func TestName_OneThatCountedFromTheBeginningCountsAgain(t *testing.T) {
	s := newScript(t, "a")
	first := s.cores["a"]
	s.begin("b")
	s.begin("c")
	s.calm(40)

	s.start("a")
	s.see("a", "abc")
	s.calm(40)
	require.True(t, s.cores["a"].Ready())
	s.play("crash c; start c")
	s.calm(40)
	s.play("write a; meet a b")
	s.stands(1, 0)

	s.cores["a"] = first
	s.calm(4 * (duplicateBeats + 20))
	require.True(t, first.Ready())
	s.play("read a; ask a c")
	s.stands(1, 1)
	s.end()
}

// The memory of members does not depend on MinMembers. If two members differ, both report it once.
func TestMinMembers_ThatDifferAreTold(t *testing.T) {
	s := newScript(t, "abc")
	s.beginAs("d", "d", 2)
	s.calm(40)
	require.Equal(t, map[string][]Effect{
		"a": {Unequal{"d", 2}}, "b": {Unequal{"d", 2}}, "c": {Unequal{"d", 2}},
		"d": {Unequal{"a", 1}, Unequal{"b", 1}, Unequal{"c", 1}},
	}, s.raised())
	s.beginAs("e", "e", 1)
	s.calm(40)
	require.Equal(t, map[string][]Effect{"d": {Unequal{"e", 1}}, "e": {Unequal{"d", 2}}},
		s.raised())
}

// [R44] A message of a former process of a member arrives late. Once the other members have
// recorded the present one, it has no effect.
func TestFormer_ALateHeartbeatBringsNobodyBack(t *testing.T) {
	s := newScript(t, "abc")
	s.calm(1)
	for range 3 {
		s.wake(s.cores["b"].cfg.BeatInterval, "b")
	}
	late := s.take(func(m mail) bool {
		return m.from == "b" && m.to == "a" && m.send.Manifest == wire.ReplicatorBeat
	})
	require.NotEmpty(t, late)
	s.take(all)
	s.play("crash b; start b")
	s.calm(40)
	a, b := s.cores["a"], s.cores["b"]
	require.True(t, b.Ready())
	before := a.Stats().Strangers
	s.hand(late...)
	require.Equal(t, before+uint64(len(late)), a.Stats().Strangers)
	require.Equal(t, b.Replica(), a.peers.of("b").replica)
	s.take(all)
	s.play("write a; meet a b")
	s.stands(1, 0)
	s.end()
}

// [R44] The same before the present process has its place, when no member can tell yet which one is
// the later.
func TestFormer_ALateHeartbeatDelaysTheNextAtMost(t *testing.T) {
	s := newScript(t, "abc")
	s.wake(2*s.cores["b"].cfg.BeatInterval, "b")
	late := s.take(between("b", "a"))
	require.NotEmpty(t, late)
	s.take(all)
	s.play("write a; push a c; crash b; start b; ask a b")
	s.hand(late...)
	s.end()
}

// lies returns the message of a member that remembers n others, numbered from a first one on.
func lies(t *testing.T, from, n int) []byte {
	t.Helper()
	var lies []quorum.Member
	for i := range n {
		lies = append(lies, quorum.Member{Name: fmt.Sprintf("lie%09d", from+i), Rank: quorum.In,
			Inc: quorum.Incarnation{Number: 1, Replica: causal.Replica(1<<30 + from + i)}})
	}
	return encode(&pb.Members{Members: quorum.Encode(lies), Name: "b", Least: 1})
}

// tell delivers a message with a memory to a, as if from had sent it.
func (s *script) tell(from string, as causal.Replica, payload []byte) {
	s.step("a", Receive{Member: from, From: as, To: s.cores["a"].Replica(),
		Manifest: wire.ReplicatorMembers, Payload: payload})
}

func TestMembers_OnlyThoseInViewAreHeard(t *testing.T) {
	s := newScript(t, "abc")
	a, before := s.cores["a"], s.cores["a"].members.Digest()
	s.tell("x", 77, lies(t, 0, 10))
	require.Equal(t, before, a.members.Digest())
	s.tell("b", s.cores["b"].Replica(), lies(t, 0, 10))
	require.Equal(t, 13, a.QuorumStatus().Counted, "a member is believed")
}

// Two memories that are each within the limit may exceed it when merged.
func TestMembers_MoreThanTheLimitAreRefused(t *testing.T) {
	s := newScript(t, "abc")
	a, b := s.cores["a"], s.cores["b"].Replica()
	s.tell("b", b, lies(t, 0, 6000))
	require.Equal(t, 6003, a.QuorumStatus().Counted)
	refused, digest := a.Stats().Malformed, a.members.Digest()
	s.tell("b", b, lies(t, 6000, 6000))
	require.Equal(t, refused+1, a.Stats().Malformed)
	require.Equal(t, digest, a.members.Digest())
}

// A member that receives its own name with the largest accepted version or number can no longer
// take its place: nothing overflows, and the other members continue. It needs another name.
func TestMembers_TheLargestVersionIsTheLast(t *testing.T) {
	for name, lie := range map[string]quorum.Member{
		"version": {Name: "b", Version: quorum.MaxOrdinal, Rank: quorum.Gone,
			Inc: quorum.Incarnation{Number: 1, Replica: 77}, Order: 1},
		"number": {Name: "b", Rank: quorum.In,
			Inc: quorum.Incarnation{Number: quorum.MaxOrdinal, Replica: 77}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, "abc")
			s.play("crash b; start b")
			s.tell("c", s.cores["c"].Replica(),
				encode(&pb.Members{Members: quorum.Encode([]quorum.Member{lie}),
					Name: "c", Least: 1}))
			s.calm(60)
			require.False(t, s.cores["b"].Ready())
			require.Equal(t, lie.Inc, s.cores["b"].members.Own().Inc)
			s.play("write a; meet a c")
			s.stands(1, 0)
		})
	}
}

// A member that never answers a request for its membership record is asked ever more rarely.
func TestPull_AMuteMemberIsAskedEverMoreRarely(t *testing.T) {
	l := newLab(t, "a", "b", "c")
	pulls := 0
	l.watch = func(at string, e Effect) {
		s, ok := e.(Send)
		if !ok || at != "a" || s.Manifest != wire.ReplicatorBeat {
			return
		}
		var m pb.Beat
		require.NoError(t, decode(s.Payload, &m))
		if m.Pull && s.Member == "b" {
			pulls++
		}
	}
	a := l.cores["a"]
	b := a.peers.of("b")
	// B shows another memory with each heartbeat, and its records are lost.
	for i := range 600 {
		l.now = l.now.Add(100 * time.Millisecond)
		beat := encode(&pb.Beat{Digest: digest(b.vector()), Members: uint64(i/10) + 2})
		l.step("a", Receive{Member: "b", From: b.replica, Manifest: wire.ReplicatorBeat,
			Payload: beat})
		l.step("a", Wake{})
		l.take(all)
	}
	require.Greater(t, pulls, 5)
	require.Less(t, pulls, 20, "in a minute")
}
