package crdt_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	protobuf "google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/proto"
)

type (
	color  string
	level  int8
	uuid   [4]byte
	secret []byte
)

// checkNatural checks that elements of one type are read in order and without duplicates, also
// after encoding and decoding.
func checkNatural[E any](t *testing.T, compare func(a, b E) int, elems *rapid.Generator[E]) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(elems, 0, 10).Draw(t, "elements")
		var s crdt.ORSet[E]
		w := crdt.NewReplica(1).Writer()
		s.Add(w, want...)
		require.NoError(t, w.Err())
		slices.SortFunc(want, compare)
		want = slices.CompactFunc(want, func(a, b E) bool { return compare(a, b) == 0 })
		got, err := crdt.ORSet[E]{}.Decode([]byte(encode(t, s)))
		require.NoError(t, err)
		require.Equal(t, len(want), got.Len())
		i := 0
		for e := range got.All() {
			require.Zero(t, compare(want[i], e))
			require.True(t, s.Contains(e))
			i++
		}
		require.Equal(t, len(want), i)
	})
}

func cmp[E int | int8 | int64 | uint8 | uint64 | level | float64 | float32 | color](a, b E) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func TestCodec_NaturalOrderAndIdentity(t *testing.T) {
	checkNatural(t, cmp[int64], rapid.OneOf(rapid.Int64(), rapid.Int64Range(-300, 300)))
	checkNatural(t, cmp[level], rapid.Map(rapid.Int8(), func(n int8) level { return level(n) }))
	checkNatural(t, cmp[uint64], rapid.OneOf(rapid.Uint64(), rapid.Uint64Range(0, 300)))
	checkNatural(t, cmp[uint8], rapid.Uint8())
	checkNatural(t, cmp[float64], rapid.Float64())
	checkNatural(t, cmp[float32], rapid.Float32())
	checkNatural(t, cmp[color], rapid.Map(rapid.String(), func(s string) color { return color(s) }))
	checkNatural(t, func(a, b secret) int { return bytes.Compare(a, b) },
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) secret { return b }))
	checkNatural(t, func(a, b uuid) int { return bytes.Compare(a[:], b[:]) },
		rapid.Map(rapid.Uint32(), func(n uint32) uuid {
			return uuid{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}
		}))
}

func TestCodec_Floats(t *testing.T) {
	var s crdt.ORSet[float64]
	w := crdt.NewReplica(1).Writer()
	s.Add(w, math.Copysign(0, -1), 0, math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64)
	require.NoError(t, w.Err())
	require.Equal(t, 4, s.Len())
	require.Equal(t, []float64{math.Inf(-1), 0, math.SmallestNonzeroFloat64, math.Inf(1)},
		slices.Collect(s.All()))
	s.Add(w, math.NaN())
	require.ErrorIs(t, w.Err(), crdt.ErrElement)
}

func TestCodec_MissingIsRefusedWithTheRemedy(t *testing.T) {
	var s crdt.ORSet[point]
	w := crdt.NewReplica(1).Writer()
	s.Add(w, point{1, 2})
	require.ErrorIs(t, w.Err(), crdt.ErrInvalid)
	require.ErrorContains(t, w.Err(), "crdt.JSON[crdt_test.point]()")
	require.False(t, s.Contains(point{1, 2}))
}

// unstable is a type that loses part of its value in JSON, which its encoding reveals.
type unstable struct{ N int }

func (u unstable) MarshalJSON() ([]byte, error) {
	return []byte(strings.Repeat("[", u.N) + strings.Repeat("]", u.N)), nil
}
func (u *unstable) UnmarshalJSON([]byte) error { u.N = 1; return nil }

func TestCodec_JSON(t *testing.T) {
	s := crdt.NewORSet(crdt.JSON[map[string]int]())
	w := crdt.NewReplica(1).Writer()
	s.Add(w, map[string]int{"b": 2, "a": 1})
	require.NoError(t, w.Err())
	require.True(t, s.Contains(map[string]int{"a": 1, "b": 2}))
	require.Equal(t, "{map[a:1 b:2]}", s.String())
	_, err := crdt.JSON[map[string]int]().Decode([]byte(`{"b":2,"a":1}`))
	require.ErrorIs(t, err, crdt.ErrMalformed)

	f := crdt.NewORSet(crdt.JSON[any]())
	w = crdt.NewReplica(1).Writer()
	f.Add(w, math.NaN())
	require.ErrorIs(t, w.Err(), crdt.ErrElement)
	u := crdt.NewORSet(crdt.JSON[unstable]())
	w = crdt.NewReplica(1).Writer()
	u.Add(w, unstable{3})
	require.ErrorIs(t, w.Err(), crdt.ErrElement)
}

func TestCodec_Proto(t *testing.T) {
	s := crdt.NewORSet(crdt.Proto[*proto.Envelope]())
	w := crdt.NewReplica(1).Writer()
	s.Add(w, &proto.Envelope{Cluster: "shop", Version: 1}, &proto.Envelope{
		Cluster: "shop", Version: 1})
	require.NoError(t, w.Err())
	require.Equal(t, 1, s.Len())
	for e := range s.All() {
		require.Equal(t, "shop", e.Cluster)
	}
	_, err := crdt.Proto[*proto.Envelope]().Decode([]byte{0x08, 0x00})
	require.ErrorIs(t, err, crdt.ErrMalformed)
	_, err = crdt.Proto[*proto.Envelope]().Decode([]byte{0x08})
	require.ErrorIs(t, err, crdt.ErrMalformed)
	_, err = crdt.Proto[*proto.Envelope]().Append(nil, nil)
	require.ErrorIs(t, err, crdt.ErrElement)
	_, err = crdt.Proto[protobuf.Message]().Append(nil, nil)
	require.ErrorIs(t, err, crdt.ErrElement)
	_, err = crdt.Proto[protobuf.Message]().Decode(nil)
	require.ErrorIs(t, err, crdt.ErrInvalid)
}

func TestLimits_ElementSize(t *testing.T) {
	var s crdt.ORSet[string]
	w := crdt.NewReplica(1).Writer()
	s.Add(w, strings.Repeat("x", 64<<10))
	require.ErrorIs(t, w.Err(), crdt.ErrTooLarge)
	require.Zero(t, s.Len())
	var r crdt.LWWRegister[string]
	w = crdt.NewReplica(1).Writer()
	r.Set(w, strings.Repeat("x", 16<<20))
	require.ErrorIs(t, w.Err(), crdt.ErrTooLarge)
}

// Decoding bytes of another type gives a typed error (law 18), decoding garbage gives ErrMalformed
// (law 15).
func TestDecode_OtherTypeVersionAndGarbage(t *testing.T) {
	var s crdt.ORSet[string]
	s.Add(crdt.NewReplica(1).Writer(), "x")
	b := []byte(encode(t, s))
	_, err := crdt.PNCounter{}.Decode(b)
	require.ErrorIs(t, err, crdt.ErrType)
	_, err = crdt.ORSet[int]{}.Decode(b)
	require.ErrorIs(t, err, crdt.ErrType)
	_, err = crdt.LWWMap[string, string]{}.Decode(b)
	require.ErrorIs(t, err, crdt.ErrType)
	b[1] = 9
	got, err := s.Decode(b)
	require.ErrorIs(t, err, crdt.ErrVersion)
	require.Equal(t, encode(t, s), encode(t, got), "the receiver is unchanged")
	_, err = s.Decode(nil)
	require.ErrorIs(t, err, crdt.ErrMalformed)
	_, err = crdt.ParseDelta([]byte{1})
	require.ErrorIs(t, err, crdt.ErrMalformed)
	_, err = s.Decode([]byte("\x08\x01\x12\x08\x01\x00\x00\x00\x00\x00\x00\x00\x22\x06\x12\x02\x41x\x20\x01"))
	require.ErrorIs(t, err, crdt.ErrMalformed, "an atom that the vector does not cover")
}
