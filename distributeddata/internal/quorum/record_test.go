package quorum

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
)

func TestRecord_MembersBeyondTheLimitAreRefused(t *testing.T) {
	var all []Member
	for i := range 3000 {
		all = append(all, Member{Name: fmt.Sprintf("member %05d", i), Rank: In,
			Inc: Incarnation{1, causal.Replica(i + 1)}})
	}
	_, err := Remember(all).Text()
	require.ErrorContains(t, err, "over the limit of 131072: 3000 members are counted")
}

func TestRecord_OfThoseThatAreGoneTheNewestAreKept(t *testing.T) {
	var all []Member
	for i := range maxGoneRecorded + 50 {
		all = append(all, Member{Name: fmt.Sprintf("m%05d", i), Rank: Gone, Inc: Incarnation{
			1, 1}, Order: uint64(i + 1)})
	}
	require.Len(t, Remember(prune(slices.Clone(all), maxGoneRecorded)).all, maxGoneRecorded)
	require.Equal(t, "m00050", prune(slices.Clone(all), maxGoneRecorded)[0].Name)
}

func FuzzRecord(f *testing.F) {
	m := Remember([]Member{{Name: "a", Rank: In, Inc: Incarnation{1, 7}},
		{Name: "b", Rank: Gone, Inc: Incarnation{2, 1 << 63}, Order: 1}})
	m.Chain = Chain{3, 9}
	text, err := m.Text()
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"concord":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ReadRecord(b)
		if err != nil {
			return
		}
		again, err := m.Text()
		require.NoError(t, err)
		require.Equal(t, string(b), string(again))
	})
}
