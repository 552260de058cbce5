package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/distributeddata/internal/bases"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// sameAsGenerated asserts that generated code decodes b without unknown fields, and encodes it
// again identically.
func sameAsGenerated(t *testing.T, b []byte, m proto.Message) {
	t.Helper()
	require.NoError(t, proto.UnmarshalOptions{}.Unmarshal(b, m))
	require.Empty(t, m.ProtoReflect().GetUnknown())
	again, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	require.NoError(t, err)
	require.Equal(t, again, b, "%T", m)
}

func TestCodec_IsThatOfTheSchema(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"), add("s", "y"), count("c", "k", 3), count("c", "m", 1))
	l.deliver(all)
	l.update("b", Level{}, remove("s", "x"), drop("c", "k"),
		op{kind: opWrite, key: "r", sub: "q", value: 7})
	l.update("b", Level{}, op{kind: opDelete, key: "s"}, op{kind: opDelete, key: "c"})
	b := l.cores["b"]
	own, _ := b.history.Events(b.Replica(), 1)
	b.outbox.Causes(b.Replica(), 0, b.Seen()) // so that it names replicas that are not in head
	d := b.outbox.delta(b.herald(), own, 0, 2)
	sameAsGenerated(t, encodePush(&d, b.Replica(), b.Keys()), &pb.Push{})
	for _, x := range []history.EventHash{0, 1, 1 << 31} {
		sameAsGenerated(t, encodeAck(7, true, 9, x), &pb.Ack{})
	}

	for name, src := range map[string]source{
		"state": {keys: b.Keys(), head: head{head: b.Seen(), state: true, sum: b.history.Sum(),
			ready: true, records: 3, partial: false, differing: []uint64{4, 5}}},
		"delta": {keys: b.Keys(), head: head{head: b.Seen(), base: b.Seen().Set(b.Replica(), 0)},
			events: everything(b).Events},
	} {
		stream, last := src.take(1 << 20)
		require.True(t, last, name)
		for i := 0; len(stream) > 0; i++ {
			record, n := protowire.ConsumeBytes(stream)
			require.Positive(t, n)
			stream = stream[n:]
			switch {
			case i == 0:
				sameAsGenerated(t, record, &pb.Head{})
			case src.head.state:
				sameAsGenerated(t, record, &pb.KeyState{})
			default:
				sameAsGenerated(t, record, &pb.Event{})
			}
		}
	}
}

// encodePush encodes a push with a fresh encoder.
func encodePush(d *history.Delta, origin causal.Replica, keys history.Keys) []byte {
	var w encoder
	of := *d
	of.Origin = origin
	return w.push(&of, keys, bases.Base{})
}

// A stream decodes to the same, however it is cut into parts, and a large key is sent in pieces.
func TestStream_CutAnywhere(t *testing.T) {
	l := newLab(t, "a", "b")
	for i := range 40 {
		l.update("a", Level{}, add("s0", strings.Repeat("e", i)),
			add(fmt.Sprint("s", i%7), fmt.Sprint(i)), count("c", fmt.Sprint(i), 3))
	}
	l.update("b", Level{}, drop("c", "7"))
	l.deliver(all)
	a := l.cores["a"]
	want := encodeState(a.history.State())
	for _, size := range []int{1, 2, 3, 7, 50, 1000, 100_000} {
		src := source{keys: a.Keys(), head: head{head: a.Seen(), state: true, sum: a.history.Sum()}}
		var st stage
		for n := 0; ; n++ {
			part, last := src.take(size)
			require.LessOrEqual(t, len(part), size)
			require.True(t, len(part) == size || last)
			require.NoError(t, st.feed(part))
			if last {
				break
			}
		}
		require.NoError(t, st.end())
		got, err := st.state(history.State{})
		require.NoError(t, err, "parts of %d bytes", size)
		require.Equal(t, want, encodeState(got))
		require.Equal(t, a.history.Sum(), got.Sum)
	}
}

// A large event is sent in pieces too, with its gone atoms marked.
func TestStream_EventsCutAnywhere(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, count("c", "m", 1), count("c", "n", 1))
	l.deliver(all)
	var ops []op
	for i := range 40 {
		ops = append(ops, add("s0", strings.Repeat("e", i)),
			add(fmt.Sprint("s", i%7), fmt.Sprint(i)))
	}
	l.update("b", Level{}, append(ops, drop("c", "m"), drop("c", "n"))...)
	l.update("b", Level{}, remove("s0", "eee"), remove("s3", "3"), op{kind: opDelete, key: "s4"})
	b := l.cores["b"]
	want := everything(b)
	for i, e := range want.Events {
		want.Events[i] = b.history.Fill(e.Event)
	}
	for _, size := range []int{1, 7, 50, 1000, 100_000} {
		src := source{keys: b.Keys(), head: head{head: b.Seen(), base: want.Base},
			events: everything(b).Events}
		var st stage
		for last := false; !last; {
			var part []byte
			part, last = src.take(size)
			require.NoError(t, st.feed(part))
		}
		got, err := st.delta()
		require.NoError(t, err)
		require.Equal(t, pushed(want), pushed(got), "parts of %d bytes", size)
	}
}

func TestStream_BrokenOnesAreRefused(t *testing.T) {
	l := newLab(t, "a", "b")
	l.update("a", Level{}, add("s", "x"), add("s2", "x"), count("c", "k", 3))
	a := l.cores["a"]
	for name, breakIt := range map[string]func(h *head, s *history.State){
		"fingerprint": func(h *head, _ *history.State) { h.sum[1]++ },
		"atom beyond head": func(h *head, _ *history.State) {
			h.head = causal.MakeVector(causal.Dot{Replica: a.Replica(), N: 0},
				causal.Dot{Replica: 9, N: 1})
		},
		"base beyond head": func(h *head, _ *history.State) {
			h.base = causal.MakeVector(causal.Dot{Replica: 99, N: 1})
		},
		"events of no base": func(h *head, _ *history.State) { h.state = false },
	} {
		h, s := head{head: a.Seen(), state: true, sum: a.history.Sum()}, a.history.State()
		breakIt(&h, &s)
		src := source{keys: s.Keys, head: h}
		if !h.state {
			src.events = nil
		}
		data, _ := src.take(1 << 20)
		var st stage
		err := st.feed(data)
		if err == nil && st.head.state {
			_, err = st.state(history.State{})
		} else if err == nil {
			_, err = st.delta()
		}
		require.ErrorIs(t, err, errMalformed, name)
	}
	var st stage
	data := encodeState(a.history.State())
	require.NoError(t, st.feed(data[:len(data)-1]))
	require.ErrorIs(t, st.end(), errMalformed, "cut short")
}

// A push tells the start of a key by the key before, and the removal of an atom of its origin by
// the add that replaces it. Its receiver gets the same events.
func TestCodec_PushesTellKeysAndRemovalsByOthers(t *testing.T) {
	l := newLab(t, "a", "b")
	long := strings.Repeat("k", 2*maxShared)
	keys := []string{"cart-a", "cart-b", "cart-b", "é-cart", "è-cart", "c", long, long, long +
		"1", long + "2"}
	l.update("b", Level{}, add("s", "y"), count("c", "m", 1))
	l.deliver(all)
	deltas := l.cores["b"].Stats().Deltas
	push := func() {
		l.step("a", Wake{})
		for _, m := range l.take(of(wire.ReplicatorPush)) {
			sameAsGenerated(t, m.send.Payload, &pb.Push{})
			l.hand(m)
		}
		l.deliver(all)
		require.Equal(t, stateBytes(l.cores["a"]), stateBytes(l.cores["b"]))
	}
	for range 2 {
		for i, key := range keys {
			l.answered("a", count(key, "k", 1), count(key, "m", 1), add("s", fmt.Sprint(i%3)))
		}
		push()
	}
	l.answered("a", add("s", "y")) // replaces the atom of b
	push()
	l.answered("a", add("set-gone", "x")) // leaves nothing, not even its key
	l.answered("a", op{kind: opDelete, key: "set-gone"})
	for i := range 2 {
		l.answered("a", add("set-stays", fmt.Sprint(i))) // the second time as the first key
		push()
	}
	l.answered("a", remove("s", "y"), remove("s", "1"), count("c", "k", 1), count("c", "m", 1),
		count("d", "k", 1), drop("cart-a", "k"))
	push()
	a, b := l.cores["a"], l.cores["b"]
	require.Zero(t, b.Stats().Malformed)
	require.Equal(t, deltas, b.Stats().Deltas, "the pushes are enough")
	sent, _ := a.history.Events(a.Replica(), 1)
	got, _ := b.history.Events(a.Replica(), 1)
	require.Len(t, got, len(sent))
	require.Equal(t, sent[len(sent)-1], got[len(got)-1],
		"it was pushed alone, so nothing of it was superseded")
}

func TestCodec_SharedStartsAndReplacedAtomsAreBounded(t *testing.T) {
	push := func(k ...*pb.KeyChange) []byte {
		m := &pb.Push{From: 3}
		for _, k := range k {
			m.Events = append(m.Events, &pb.Event{Keys: []*pb.KeyChange{k}})
		}
		return encode(m)
	}
	long := &pb.KeyChange{Key: strings.Repeat("k", history.MaxKey)}
	adds := func(instead uint64) *pb.KeyChange {
		return &pb.KeyChange{Key: "k", Adds: []*pb.Add{{Path: []byte("p"), Instead: instead}}}
	}
	for name, payload := range map[string][]byte{
		"more than the key before": push(&pb.KeyChange{Key: "abc"},
			&pb.KeyChange{Key: "d", Shared: 4}),
		"no key before":           push(&pb.KeyChange{Key: "d", Shared: 1}),
		"more than may be shared": push(long, &pb.KeyChange{Key: "d", Shared: maxShared + 1}),
		"a key that is too long": push(long,
			&pb.KeyChange{Key: strings.Repeat("k", history.MaxKey-maxShared+1), Shared: maxShared}),
		"half a character": push(&pb.KeyChange{Key: "é"},
			&pb.KeyChange{Key: "d", Shared: 1}),
		"an atom before all events":   push(adds(4)),
		"an atom of no event at all":  push(adds(1 << 63)),
		"a number beyond all numbers": push(long, &pb.KeyChange{Key: "d", Shared: 1<<32 - 1}),
	} {
		_, err := decodePush(payload, 7, func([]byte) (causal.Vector, bool) {
			return causal.Vector{}, false
		})
		require.ErrorIs(t, err, errMalformed, name)
	}
	d, err := decodePush(push(&pb.KeyChange{Key: "abc"}, &pb.KeyChange{Shared: 3}, adds(4)), 7, nil)
	require.NoError(t, err)
	require.Equal(t, "abc", d.Events[1].Keys[0].Key)
	require.Equal(t, []causal.Atom{
		{Path: "p", Leaf: causal.Leaf{Dot: causal.Dot{Replica: 7, N: 2}}}},
		d.Events[2].Keys[0].Removes)
}
