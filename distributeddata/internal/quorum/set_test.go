package quorum

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
)

// setOf returns the set that the first member sees: "a:in b:going" are members and their ranks.
func setOf(least int, recorded bool, members string) Set {
	s := NewSet("a", least, recorded)
	for i, f := range strings.Fields(members) {
		name, rank, _ := strings.Cut(f, ":")
		m := Member{Name: name, Inc: Incarnation{1, causal.Replica(i + 1)}}
		for r := Absent; r <= Gone; r++ {
			if r.String() == rank {
				m.Rank = r
			}
		}
		s.Memory = s.With(m)
	}
	return s
}

func TestSet_Counts(t *testing.T) {
	for _, test := range []struct {
		members  string
		least    int
		recorded bool
		size     int // that quorums are counted over
		beside   int // the same without this member
		b        string
	}{
		// b: may it go, and how many must cover what had been seen before
		{"", 0, false, 1, 1, "stays"},
		{"", 3, false, 3, 3, "stays"},
		{"a:joining b:joining c:joining", 3, false, 3, 3, "stays"},
		{"a:in b:in c:in", 1, false, 3, 2, "may go, 2 cover"},
		{"a:in b:in c:in", 3, false, 3, 2, "may go, 2 cover"},
		{"a:in b:in c:in", 5, false, 5, 4, "stays"},
		{"a:in b:going c:in", 3, false, 3, 2, "may go, 2 cover"},
		{"a:going b:in c:in", 1, false, 3, 2, "stays"},
		{"a:gone b:in c:in d:in", 1, false, 3, 3, "may go, 2 cover"},
		{"a:in b:in", 1, false, 2, 1, "may go, 1 cover"},
		{"b:in", 1, false, 1, 1, "stays"},
		{"b:in", 1, true, 1, 1, "may go, 0 cover"},
		{"a:joining b:going", 1, true, 1, 1, "may go, 0 cover"},
	} {
		s := setOf(test.least, test.recorded, test.members)
		require.Equal(t, test.size, s.Size(), "%+v", test)
		require.Equal(t, test.beside, s.Beside(), "%+v", test)
		got := "stays"
		if s.MayGo("b") {
			got = fmt.Sprintf("may go, %d cover", s.Needed("b"))
		}
		require.Equal(t, test.b, got, "%+v", test)
	}
}

// Two quorums of members that are counted before and after a member has gone share a member: those
// that must cover what had been seen, and any majority of those that stay.
func TestSet_NeededMeetsEveryLaterMajority(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for least := range n + 2 {
			s := NewSet("a", least, false)
			for i := range n {
				s.Memory = s.With(Member{Name: string(rune('a' + i)), Rank: In,
					Inc: Incarnation{1, causal.Replica(i + 1)}})
			}
			if !s.MayGo("b") {
				continue
			}
			need := s.Needed("b")
			s.Memory = s.Leave("b", false)
			stay := s.Count(In)
			require.Greater(t, need+MajorityOf(s.Size()), stay, "%d members, least %d", n, least)
		}
	}
}

func TestSet_HearsOneKindOfMembership(t *testing.T) {
	members := setOf(1, false, "a:in b:in").Memory
	later := setOf(1, false, "a:in b:in c:in").Memory
	in := func(m Memory, cluster, epoch uint64) Memory {
		m.Chain = Chain{epoch, cluster}
		return m
	}
	plain, record := NewSet("a", 1, false), NewSet("a", 1, true)
	plain.Memory = members
	heard, err := plain.Hear(later)
	require.NoError(t, err)
	require.Equal(t, later, heard)
	_, err = plain.Hear(in(later, 7, 1))
	require.ErrorIs(t, err, errRecord)

	record.Memory = in(members, 7, 2)
	_, err = record.Hear(later)
	require.ErrorIs(t, err, errNoRecord)
	_, err = record.Hear(in(later, 8, 3))
	require.ErrorIs(t, err, errOtherCluster)
	heard, err = record.Hear(in(later, 7, 1))
	require.NoError(t, err)
	require.Equal(t, record.Memory, heard, "an older one")
	heard, err = record.Hear(in(later, 7, 3))
	require.NoError(t, err)
	require.Equal(t, in(later, 7, 3), heard)
	heard, err = record.Hear(in(later, 7, 2))
	require.NoError(t, err)
	require.Equal(t, in(later, 7, 2), heard, "both, of a store that lost writes")
}

func TestSet_NextRecordIsRead(t *testing.T) {
	s := setOf(1, true, "a:in b:going")
	next, text, err := s.NextRecord(s.Leave("b", true), func() uint64 { return 7 })
	require.NoError(t, err)
	require.Equal(t, Chain{1, 7}, next.Chain)
	heard, alarm, err := s.HearRecord("v1", text)
	require.NoError(t, err)
	require.NoError(t, alarm)
	require.Equal(t, next, heard)

	s.Memory = next
	_, alarm, err = s.HearRecord("", nil)
	require.NoError(t, err)
	require.ErrorIs(t, alarm, errRecordRemoved)
	older := text
	s.Memory, _, err = s.NextRecord(s.Memory, nil)
	require.NoError(t, err)
	heard, alarm, err = s.HearRecord("v1", older)
	require.NoError(t, err)
	require.ErrorContains(t, alarm, "went back to epoch 1")
	require.Equal(t, s.Memory, heard)
}
