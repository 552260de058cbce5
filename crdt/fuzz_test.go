package crdt_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// tried is the set of operations that the fuzzers apply to a value of some type.
type tried interface {
	decode(t *testing.T, b []byte)
	merge(t *testing.T, a, b []byte)
	apply(t *testing.T, state []byte, d crdt.Delta)
}

// of is the type of an empty value.
type of[T interface {
	crdt.Value[T]
	String() string
}] struct{ empty T }

func each() []tried {
	return []tried{
		of[crdt.GCounter]{}, of[crdt.PNCounter]{}, of[crdt.BoundedCounter]{},
		of[crdt.GSet[string]]{}, of[crdt.ORSet[string]]{}, of[crdt.ORSet[int8]]{},
		of[crdt.ORSet[float32]]{},
		of[crdt.ORSet[point]]{crdt.NewORSet(crdt.JSON[point]())}, of[crdt.RWSet[string]]{},
		of[crdt.EWFlag]{}, of[crdt.DWFlag]{},
		of[crdt.LWWRegister[string]]{}, of[crdt.MVRegister[int]]{}, of[crdt.MaxRegister[int]]{},
		of[crdt.MinRegister[string]]{},
		of[crdt.LWWMap[string, int64]]{}, of[crdt.ORMultiMap[string, int]]{},
		of[crdt.PNCounterMap[string]]{}, of[counters]{},
		of[crdt.ORMap[string, crdt.BoundedCounter]]{},
		of[crdt.ORMap[string, crdt.ORMap[int, crdt.ORSet[string]]]]{},
		of[crdt.Record[profile]]{}, of[crdt.Record[team]]{},
	}
}

// usable checks that a value decoded from untrusted bytes can be printed and encoded, and equals
// its decoded encoding.
func usable[T interface {
	crdt.Value[T]
	String() string
}](t *testing.T, v T) {
	_ = v.String()
	b, err := v.AppendBinary(nil)
	if errors.Is(err, crdt.ErrTooLarge) {
		return // two states below the limits may exceed them together
	}
	require.NoError(t, err)
	again, err := v.Decode(b)
	require.NoError(t, err)
	require.Equal(t, string(b), encode(t, again))
	require.Equal(t, string(b), encode(t, v.Merge(v)))
	require.Equal(t, string(b), encode(t, v.Merge(again)))
}

func (o of[T]) decode(t *testing.T, b []byte) {
	v, err := o.empty.Decode(b)
	if err != nil {
		require.True(t, errors.Is(err, crdt.ErrMalformed) || errors.Is(err, crdt.ErrVersion) ||
			errors.Is(err, crdt.ErrTooLarge) || errors.Is(err, crdt.ErrType), "%v", err)
		return
	}
	require.Equal(t, string(b), encode(t, v))
	usable(t, v)
}

func (o of[T]) merge(t *testing.T, a, b []byte) {
	x, err := o.empty.Decode(a)
	if err != nil {
		return
	}
	y, err := o.empty.Decode(b)
	if err != nil {
		return
	}
	both := x.Merge(y)
	usable(t, both)
	require.Equal(t, encode(t, x), string(a), "an operand was written")
	require.Equal(t, encode(t, y), string(b), "an operand was written")
	require.True(t, seen(t, both).Equal(seen(t, y.Merge(x))))
}

func (o of[T]) apply(t *testing.T, state []byte, d crdt.Delta) {
	v, err := o.empty.Decode(state)
	if err != nil {
		return
	}
	was := v
	if err := crdt.Apply(&v, d); err != nil {
		require.Equal(t, string(state), encode(t, v), "changed by a delta that was refused")
		return
	}
	usable(t, v)
	require.True(t, seen(t, was).Leq(seen(t, v)))
}

// FuzzDecode decodes bytes as every type: decoding never panics, and a decoded value is usable and
// encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	for _, g := range goldens(f) {
		f.Add(g)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, typ := range each() {
			typ.decode(t, b)
		}
		if d, err := crdt.ParseDelta(b); err == nil {
			require.Equal(t, string(b), string(deltaBytes(t, d)))
		}
	})
}

// FuzzMerge merges two untrusted states, as every type.
func FuzzMerge(f *testing.F) {
	g := goldens(f)
	for i := range g {
		f.Add(g[i], g[i])
		f.Add(g[i], g[(i+1)%len(g)])
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, typ := range each() {
			typ.merge(t, a, b)
		}
	})
}

// FuzzApply applies an untrusted delta to an untrusted state, as every type.
func FuzzApply(f *testing.F) {
	g := goldens(f)
	for _, state := range g {
		for _, d := range g {
			if _, err := crdt.ParseDelta(d); err == nil {
				f.Add(state, d)
			}
		}
	}
	f.Fuzz(func(t *testing.T, state, b []byte) {
		d, err := crdt.ParseDelta(b)
		if err != nil {
			return
		}
		for _, typ := range each() {
			typ.apply(t, state, d)
		}
	})
}
