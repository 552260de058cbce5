package core

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
)

// beginAs starts a process under the name of a member, or with another MinMembers than the others.
func (s *script) beginAs(process, member string, least int) {
	s.start(process)
	s.suit(process)
	cfg := &s.cores[process].cfg
	cfg.Member, cfg.MinMembers = member, least
	s.order = append(s.order, process)
	for _, n := range s.order {
		s.see(n, strings.Join(s.order, ""))
	}
}

// raised returns the alarms of a process since the last call.
func (s *script) raised() (at map[string][]Effect) {
	at = map[string][]Effect{}
	for _, a := range s.alarms {
		at[a.at] = append(at[a.at], a.what)
	}
	s.alarms = nil
	return at
}

// [M2] Of two processes of one name the later counts; the earlier says so once, and counts no
// more: what it writes and reads takes a majority of the others.
func TestName_OfTwoProcessesTheLaterCounts(t *testing.T) {
	s := newScript(t, "abc")
	s.beginAs("x", "a", 1)
	s.calm(40)
	require.True(t, s.cores["x"].Ready())
	require.False(t, s.cores["a"].Ready())
	require.Equal(t, map[string][]Effect{"a": {Usurped{By: "at x"}}}, s.raised())
	require.True(t, s.cores["a"].Rollcall().Usurped)
	require.False(t, s.cores["x"].Rollcall().Usurped)
	require.Equal(t, 3, s.cores["b"].Rollcall().Counted)

	s.play("write x; meet x b")
	s.stands(1, 0)
	s.play("write a; read a; meet a b")
	s.stands(1, 0) // of three b alone
	s.play("meet a c")
	s.stands(2, 1)
	s.calm(40)
	require.False(t, s.cores["a"].Ready(), "there is no way back while it runs")
	require.Empty(t, s.raised())
}

// The memory of members does not depend on MinMembers; that two differ is told by both, once.
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
	require.Equal(t, map[string][]Effect{"d": {Unequal{"e", 1}}, "e": {Unequal{"d", 2}}}, s.raised())
}

// [R56] What a former process of a member said arrives late: once the others have recorded the
// present one it changes nothing.
func TestFormer_ALateHeartbeatBringsNobodyBack(t *testing.T) {
	s := newScript(t, "abc")
	s.calm(1)
	for range 3 {
		s.now = s.now.Add(s.cores["b"].cfg.BeatInterval)
		s.step("b", Wake{})
	}
	late := s.take(func(m mail) bool { return m.from == "b" && m.to == "a" && m.send.Manifest == wire.ReplicatorBeat })
	require.NotEmpty(t, late)
	s.take(all)
	s.play("crash b; start b")
	s.calm(40)
	a, b := s.cores["a"], s.cores["b"]
	require.True(t, b.Ready())
	before := a.Stats().Strangers
	for _, m := range late {
		s.hand(m)
	}
	require.Equal(t, before+uint64(len(late)), a.Stats().Strangers)
	require.Equal(t, b.Replica(), a.peer("b").replica)
	s.take(all)
	s.play("write a; meet a b")
	s.stands(1, 0)
	s.end()
}

// [R56] The same before the present process has its place: nobody can tell yet which is the later.
func TestFormer_ALateHeartbeatDelaysTheNextAtMost(t *testing.T) {
	s := newScript(t, "abc")
	s.now = s.now.Add(2 * s.cores["b"].cfg.BeatInterval)
	s.step("b", Wake{})
	late := s.take(between("b", "a"))
	require.NotEmpty(t, late)
	s.take(all)
	s.play("write a; push a c; crash b; start b; ask a b")
	for _, m := range late {
		s.hand(m)
	}
	s.end()
}
