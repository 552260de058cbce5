package causal_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	gproto "google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/proto"
)

// drawState draws atoms of all kinds, with marks, and a vector that covers them and more.
func drawState(t *rapid.T) (s causal.Store, seen causal.Vector) {
	for range rapid.IntRange(0, 12).Draw(t, "atoms") {
		d := causal.Dot{Replica: causal.Replica(rapid.Uint64Range(1, 5).Draw(t, "r")),
			N: rapid.Uint64Range(1, 500).Draw(t, "n")}
		key := rapid.SampledFrom([]string{"", "a", "ab", "abc", "b\x00c",
			"long key of a map"}).Draw(t, "key")
		seen = seen.With(d)
		base := ""
		if rapid.Bool().Draw(t, "in map") {
			base = string(causal.AppendKey(
				[]byte{byte(causal.MakeTag(causal.ORMap, causal.String))}, []byte(key)))
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			slot := causal.SlotPath(base+string([]byte{byte(causal.MakeTag(causal.PNCounter, 0))}),
				d.Replica)
			s = s.Put(slot, causal.Leaf{Dot: d, Payload: causal.Total{Since: d.N, Plus: 7,
				Minus: 300}.Payload()})
		case 1:
			slot := causal.SlotPath(base+string([]byte{byte(causal.MakeTag(causal.GCounter, 0))}),
				d.Replica)
			by := causal.Dot{Replica: 9, N: d.N}
			s = s.WithMark(slot, causal.Mark{N: d.N, Plus: rapid.Uint64Range(0, 9).Draw(t, "plus"),
				By: by})
			seen = seen.With(by)
		case 2:
			s = s.Insert(base+"\x61", causal.Leaf{Dot: d, Payload: "12345678" + key})
		default:
			s = s.Insert(base+"\x41"+key, causal.Leaf{Dot: d})
		}
	}
	return s, seen
}

// The hand-written encoding equals that of generated code for the same content.
func TestState_IsTheMessageOfTheSchema(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, seen := drawState(t)
		b, err := causal.AppendState(nil, s, seen)
		require.NoError(t, err)

		var m proto.ValueState
		require.NoError(t, gproto.Unmarshal(b, &m))
		require.Empty(t, m.ProtoReflect().GetUnknown())
		again, err := gproto.MarshalOptions{Deterministic: true}.Marshal(&m)
		require.NoError(t, err)
		require.Equal(t, b, again)
		requireContent(t, s, seen, &m)

		got, vector, err := causal.ParseState(b)
		require.NoError(t, err)
		require.True(t, vector.Equal(seen))
		back, err := causal.AppendState(nil, got, vector)
		require.NoError(t, err)
		require.Equal(t, b, back)
	})
}

func requireContent(t *rapid.T, s causal.Store, seen causal.Vector, m *proto.ValueState) {
	require.EqualValues(t, 1, m.Version)
	require.True(t, slices.IsSorted(m.Replicas))
	for d := range seen.All() {
		require.Equal(t, d.N, m.Seen[slices.Index(m.Replicas, uint64(d.Replica))])
	}
	require.Len(t, m.Entries, s.Len())
	path, i := "", 0
	for want, e := range s.Prefix("") {
		x := m.Entries[i]
		path = path[:x.Shared] + string(x.Rest)
		require.Equal(t, want, path)
		leaves := slices.Collect(e.All())
		atoms := append([]*proto.ValueAtom{{Replica: x.Replica, N: x.N, Payload: x.Payload}},
			x.More...)
		require.Len(t, atoms, len(leaves))
		for j, a := range atoms {
			require.EqualValues(t, leaves[j].Replica, m.Replicas[a.Replica])
			require.Equal(t, leaves[j].N, a.N)
			require.Equal(t, leaves[j].Payload, string(a.Payload))
		}
		i++
	}
	i = 0
	for path, mark := range s.Marks() {
		x := m.Marks[i]
		require.Equal(t, path, string(x.Path))
		require.Equal(t, mark, causal.Mark{N: x.N, Plus: x.Plus, Minus: x.Minus,
			By: causal.Dot{Replica: causal.Replica(m.Replicas[x.ByReplica]), N: x.ByN}})
		i++
	}
}

// Every other encoding of the same content is rejected: order, duplicates, padding, unused entries.
func TestState_RefusesEveryOtherForm(t *testing.T) {
	good := func() *proto.ValueState {
		return &proto.ValueState{Version: 1, Replicas: []uint64{3, 5}, Seen: []uint64{4, 2},
			Entries: []*proto.ValueEntry{
				{Rest: []byte("\x41a"), N: 4, More: []*proto.ValueAtom{{Replica: 1, N: 2}}},
				{Shared: 1, Rest: []byte("b"), N: 1},
			}}
	}
	parse := func(m *proto.ValueState) error {
		b, err := gproto.MarshalOptions{Deterministic: true}.Marshal(m)
		require.NoError(t, err)
		_, _, err = causal.ParseState(b)
		return err
	}
	require.NoError(t, parse(good()))
	for name, spoil := range map[string]func(*proto.ValueState){
		"replicas descend": func(m *proto.ValueState) { slices.Reverse(m.Replicas) },
		"replica twice":    func(m *proto.ValueState) { m.Replicas[1] = 3 },
		"replica zero":     func(m *proto.ValueState) { m.Replicas[0] = 0 },
		"unused replica": func(m *proto.ValueState) {
			m.Replicas = append(m.Replicas, 7)
			m.Seen = append(m.Seen, 0)
		},
		"short vector":         func(m *proto.ValueState) { m.Seen = m.Seen[:1] },
		"long vector":          func(m *proto.ValueState) { m.Seen = append(m.Seen, 1) },
		"empty vector spelled": func(m *proto.ValueState) { m.Seen = []uint64{0, 0} },
		"index out of table":   func(m *proto.ValueState) { m.Entries[1].Replica = 2 },
		"dot zero":             func(m *proto.ValueState) { m.Entries[1].N = 0 },
		"paths descend":        func(m *proto.ValueState) { slices.Reverse(m.Entries) },
		"path twice":           func(m *proto.ValueState) { m.Entries[1].Rest = []byte("a") },
		"path not shared": func(m *proto.ValueState) {
			m.Entries[1].Shared, m.Entries[1].Rest = 0, []byte("\x41b")
		},
		"shared too long": func(m *proto.ValueState) { m.Entries[1].Shared = 3 },
		"empty path":      func(m *proto.ValueState) { m.Entries[0].Rest = nil },
		"atoms descend": func(m *proto.ValueState) {
			m.Entries[0].Replica, m.Entries[0].More[0].Replica = 1, 0
		},
		"payload in a set": func(m *proto.ValueState) { m.Entries[0].Payload = []byte("x") },
		"mark off a counter": func(m *proto.ValueState) {
			m.Marks = []*proto.ValueMark{{Path: []byte("\x41a"), N: 1, ByN: 1}}
		},
		"slot of another": func(m *proto.ValueState) {
			p := causal.SlotPath("\x20", 5)
			m.Entries = []*proto.ValueEntry{
				{Rest: []byte(p), N: 1, Payload: []byte("\x01\x01\x00")}}
		},
		"unknown field": func(m *proto.ValueState) {
			m.ProtoReflect().SetUnknown(
				protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
		},
	} {
		m := good()
		spoil(m)
		require.ErrorIs(t, parse(m), causal.ErrMalformed, name)
	}
	m := good()
	m.Version = 2
	require.ErrorIs(t, parse(m), causal.ErrVersion)

	b, err := gproto.MarshalOptions{Deterministic: true}.Marshal(good())
	require.NoError(t, err)
	padded := append([]byte{b[0], 0x81, 0x00}, b[2:]...) // version 1 in two bytes
	_, _, err = causal.ParseState(padded)
	require.ErrorIs(t, err, causal.ErrMalformed)
	for name, raw := range map[string]string{
		"zero spelled out":        "\x08\x01\x12\x08\x01\x00\x00\x00\x00\x00\x00\x00\x22\x08\x08\x00\x12\x02\x41x\x20\x01",
		"empty payload spelled":   "\x08\x01\x12\x08\x01\x00\x00\x00\x00\x00\x00\x00\x22\x08\x12\x02\x41x\x20\x01\x2a\x00",
		"fields in another order": "\x08\x01\x12\x08\x01\x00\x00\x00\x00\x00\x00\x00\x22\x06\x20\x01\x12\x02\x41x",
	} {
		_, _, err := causal.ParseState([]byte(raw))
		require.ErrorIs(t, err, causal.ErrMalformed, name)
	}
	_, _, err = causal.ParseState(
		[]byte("\x08\x01\x12\x08\x01\x00\x00\x00\x00\x00\x00\x00\x22\x06\x12\x02\x41x\x20\x01"))
	require.NoError(t, err, "as the three above, in the one form")
	for i := range b {
		_, _, err := causal.ParseState(b[:i])
		if err == nil {
			back, _, _ := causal.ParseState(b[:i])
			require.Less(t, back.Len(), 2) // cut between two whole entries
		}
	}
}

func TestState_LimitsAreEnforced(t *testing.T) {
	deep := ""
	for range causal.MaxDepth + 1 {
		deep += "\xa1k\x00\x01"
	}
	s := causal.Store{}.Put(deep+"\x41x", causal.Leaf{Dot: causal.Dot{Replica: 1, N: 1}})
	b, err := causal.AppendState(nil, s, causal.Vector{})
	require.NoError(t, err)
	_, _, err = causal.ParseState(b)
	require.ErrorIs(t, err, causal.ErrTooLarge)

	var dots []causal.Dot
	for i := range causal.MaxReplicas + 1 {
		dots = append(dots, causal.Dot{Replica: causal.Replica(i + 1), N: 1})
	}
	_, err = causal.AppendState(nil, causal.Store{}, causal.MakeVector(dots...))
	require.ErrorIs(t, err, causal.ErrTooLarge)
	b, err = causal.AppendState(nil, causal.Store{}, causal.MakeVector(dots[1:]...))
	require.NoError(t, err)
	_, v, err := causal.ParseState(b)
	require.NoError(t, err)
	require.Equal(t, causal.MaxReplicas, v.Len())

	_, _, err = causal.ParseState(make([]byte, causal.MaxState+1))
	require.ErrorIs(t, err, causal.ErrTooLarge)
	_, err = causal.ParseEvent(make([]byte, causal.MaxState+1))
	require.ErrorIs(t, err, causal.ErrTooLarge)

	// Prefix compression must be bounded: a few bytes per entry that expand to long paths.
	long := append([]byte{0x41}, make([]byte, causal.MaxPath-10)...)
	bomb := &proto.ValueState{Version: 1, Replicas: []uint64{1}, Entries: []*proto.ValueEntry{
		{Rest: long, N: 1}}}
	for i := range 255 {
		bomb.Entries = append(bomb.Entries, &proto.ValueEntry{Shared: uint32(len(long)),
			Rest: []byte{byte(i + 1)}, N: 1})
	}
	for i := range 10 {
		bomb.Entries = append(bomb.Entries, &proto.ValueEntry{Shared: uint32(len(long) + 1),
			Rest: []byte{byte(i)}, N: 1})
	}
	b, err = gproto.Marshal(bomb)
	require.NoError(t, err)
	require.Less(t, len(b), 80<<10)
	_, _, err = causal.ParseState(b)
	require.ErrorIs(t, err, causal.ErrTooLarge)
}

// Decoded states encode to the same bytes, and nothing panics.
func FuzzParseState(f *testing.F) {
	s := causal.Store{}.Put("\x41a", causal.Leaf{Dot: causal.Dot{Replica: 1, N: 2}}).
		Insert("\x41a", causal.Leaf{Dot: causal.Dot{Replica: 3, N: 1}}).
		Put(causal.SlotPath("\x20", 1), causal.Leaf{Dot: causal.Dot{Replica: 1, N: 1},
			Payload: causal.Total{Since: 1, Plus: 5}.Payload()}).
		WithMark(causal.SlotPath("\x20", 1),
			causal.Mark{N: 1, Plus: 5, By: causal.Dot{Replica: 3, N: 1}})
	b, _ := causal.AppendState(nil, s, causal.MakeVector(causal.Dot{Replica: 1, N: 2},
		causal.Dot{Replica: 3, N: 1}))
	f.Add(b)
	f.Add([]byte{8, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, seen, err := causal.ParseState(b)
		if err != nil {
			return
		}
		back, err := causal.AppendState(nil, s, seen)
		require.NoError(t, err)
		require.Equal(t, b, back)
	})
}

// FuzzParseEvent is like FuzzParseState, for events.
func FuzzParseEvent(f *testing.F) {
	e := causal.Event{Dot: causal.Dot{Replica: 1, N: 2},
		Deps: causal.MakeVector(causal.Dot{Replica: 3, N: 1})}
	e.Adds = []causal.Atom{{Path: "\x41a", Leaf: causal.Leaf{Dot: e.Dot}}}
	e.Removes = []causal.Atom{{Path: "\x41b", Leaf: causal.Leaf{Dot: causal.Dot{Replica: 3, N: 1}}}}
	e.Marks = []causal.MarkAt{
		{Path: causal.SlotPath("\x20", 3), Mark: causal.Mark{N: 1, Plus: 5, By: e.Dot}}}
	b, _ := causal.AppendEvent(nil, e)
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := causal.ParseEvent(b)
		if err != nil {
			return
		}
		back, err := causal.AppendEvent(nil, e)
		require.NoError(t, err)
		require.Equal(t, b, back)
	})
}
