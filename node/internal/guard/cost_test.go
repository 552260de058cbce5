package guard

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// costly returns batches of one message that takes much time for its size, whether it is accepted
// or not.
func costly(size int) map[string][]byte {
	of := func(m proto.Message, data []byte) []byte {
		b := stranger.Batch("127.0.0.1:8", "x", m)
		b.Envelopes[0].MessageData = data
		return mustMarshal(stranger.Send(b))
	}
	list := &structpb.ListValue{}
	return map[string][]byte{
		"elements":  of(list, bytes.Repeat([]byte{0x0a, 2, 8, 0}, size/4)),
		"texts":     of(list, bytes.Repeat([]byte{0x0a, 4, 0x1a, 2, 'a', 'b'}, size/6)),
		"numbers":   of(list, bytes.Repeat(number, size/len(number))),
		"strings":   of(&fieldmaskpb.FieldMask{}, bytes.Repeat([]byte{0x0a, 1, 'a'}, size/3)),
		"nothing":   of(list, bytes.Repeat([]byte{0x0a, 0}, size/2)),
		"unknown":   of(list, bytes.Repeat([]byte{0x48, 1}, size/2)),
		"pieces":    pieces(90, min(size/128, maxEnvelopes)),
		"one field": of(wrapperspb.String(""), bytes.Repeat([]byte{0x0a, 1, 'a'}, size/3)),
		"ours": of(envelope("a", wire.ReplicatorBeat, &pb.Beat{}),
			bytes.Repeat([]byte{0x22, 1, 'a'}, size/3)),
	}
}

// number is an element of a list: the costliest one that is accepted for its size.
var number = []byte{0x0a, 9, 0x11, 0, 0, 0, 0, 0, 0, 0, 1}

// costliest returns the largest batches that are accepted from a stranger.
func costliest() map[string]proto.Message {
	numbers := &structpb.ListValue{}
	for range maxStrangeFields / 2 {
		numbers.Values = append(numbers.Values, structpb.NewNumberValue(1))
	}
	const around = 256 // bytes of the batch itself
	return map[string]proto.Message{
		"numbers": numbers,
		"strings": &fieldmaskpb.FieldMask{Paths: slices.Repeat([]string{"a"}, maxStrangeFields)},
		"bytes":   wrapperspb.Bytes(make([]byte, maxStrangeBatch-around)),
		"text":    wrapperspb.String(strings.Repeat("é", (maxStrangeBatch-around)/2)),
	}
}

// receiveAll does what Proto.Actor does with a message that passes.
func receiveAll(g *Guard, data []byte) (all []any) {
	b, err := inbound(g).open(data)
	if err != nil {
		return nil
	}
	for _, e := range b.Envelopes {
		m, _ := remote.Deserialize(e.MessageData, b.TypeNames[e.TypeId], e.SerializerId)
		all = append(all, m)
	}
	return all
}

// TestBounds_DecodedMessagesAreInProportion decodes what passes.
func TestBounds_DecodedMessagesAreInProportion(t *testing.T) {
	g, err := New(Config{}, trusting())
	require.NoError(t, err)
	for name, data := range costly(4 << 20) {
		var all []any
		taken := kept(func() { all = receiveAll(g, data) })
		require.Less(t, taken, 16*len(data)+1<<20, name)
		runtime.KeepAlive(all)
	}
}

// kept returns the memory that is in use after f and was not before.
func kept(f func()) int {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int(after.HeapAlloc) - int(before.HeapAlloc)
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// weigh returns why a member's message is refused, or nil.
func weigh(m proto.Message, data []byte) error {
	b := budgetOf(true)
	return b.check(m.ProtoReflect().Descriptor(), data)
}

// TestBounds_OfAStranger checks the bounds that members do not have.
func TestBounds_OfAStranger(t *testing.T) {
	to := listen(t, Config{})
	in := inbound(to.guard)
	self, peer := in.check.self, in.check.peer
	batch := func(all ...proto.Message) *remote.MessageBatch {
		b := stranger.Batch(self, "x", all[0])
		for _, m := range all[1:] {
			b.Envelopes = append(b.Envelopes, stranger.Batch(self, "x", m).Envelopes...)
		}
		return b
	}
	list := func(n int) proto.Message { // 2*n fields
		one := []*structpb.Value{structpb.NewNumberValue(1)}
		return &structpb.ListValue{Values: slices.Repeat(one, n)}
	}
	hello := func(size int) proto.Message {
		m := envelope("a", wire.MembershipHello, &pb.Hello{Address: peer})
		m.ProtoReflect().SetUnknown(many(100, nil, (size-proto.Size(m))/3))
		return m
	}
	ofBytes := func(n int) proto.Message { return wrapperspb.Bytes(make([]byte, n)) }
	const all, half = maxStrangeFields / 2, maxStrangeFields / 4 // as elements
	around := proto.Size(stranger.Send(batch(ofBytes(maxStrangeBatch)))) - maxStrangeBatch
	for _, c := range []struct {
		name   string
		send   *remote.MessageBatch
		passes int // of a stranger
	}{
		{"as many fields as allowed", batch(list(all)), 1},
		{"more", batch(list(all + 1)), 0},
		{"as many in two messages", batch(list(half), list(half)), 2},
		{"more in two messages", batch(list(half), list(half+1)), 1},
		{"small messages", batch(slices.Repeat([]proto.Message{list(250)}, 200)...),
			maxStrangeFields / 500},
		{"as many bytes as allowed", batch(ofBytes(maxStrangeBatch - around)), 1},
		{"more", batch(ofBytes(maxStrangeBatch - around + 1)), 0},
		{"to this module", batch(hello(maxStrangeOurs)), 1},
		{"more to this module", batch(hello(maxStrangeOurs + 3)), 0},
	} {
		for _, listed := range []bool{false, true} {
			members, want := map[string]string{"b": self}, c.passes
			if c.send.TypeNames[0] == envelopeName {
				c.send = stranger.Changed(
					stranger.Batch(self, "concord-membership", &pb.Envelope{}),
					func(b *remote.MessageBatch) { b.Envelopes = c.send.Envelopes })
			}
			if listed {
				members["a"], want = peer, len(c.send.Envelopes)
			}
			to.sees(members)
			got, err := in.open(mustMarshal(stranger.Send(c.send)))
			require.Equal(t, err != nil, got == nil)
			require.Len(t, got.GetEnvelopes(), want, "%s, of a member: %v", c.name, listed)
		}
	}
}

// TestBounds_AMessageOfTinyElementsIsNotDecoded covers user types and types of Proto.Actor, which
// are decoded by name.
func TestBounds_AMessageOfTinyElementsIsNotDecoded(t *testing.T) {
	const size = 4 << 20
	deep := []byte{}
	for range 2 * maxDepth {
		deep = field(nil, 6, field(nil, 1, deep)) // a list in a value in a list
	}
	for name, c := range map[string]struct {
		m    proto.Message
		data []byte
	}{
		"empty values":  {&structpb.ListValue{}, many(1, nil, size/2)},
		"empty entries": {&structpb.Struct{}, many(1, nil, size/2)},
		"small entries": {&structpb.Struct{}, many(1, field(field(nil, 1, []byte("k")), 2, nil),
			size/7)},
		"deep": {&structpb.Value{}, append(deep, make([]byte, 0, small)...)},
	} {
		if name == "deep" {
			require.Error(t, weigh(c.m, c.data), name)
			continue
		}
		require.ErrorIs(t, weigh(c.m, c.data), errCost, name)
	}

	// Legitimate user messages pass.
	list := &structpb.ListValue{}
	numbers := &remote.MessageBatch{}
	for i := range 50_000 {
		list.Values = append(list.Values, structpb.NewNumberValue(float64(i)))
		numbers.Envelopes = append(numbers.Envelopes, &remote.MessageEnvelope{TypeId: int32(i),
			Target: int32(i), MessageData: []byte("abcdef")})
	}
	for _, m := range []proto.Message{
		list, numbers, wrapperspb.Bytes(make([]byte, size)),
		wrapperspb.String(string(make([]byte, size))),
	} {
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		require.NoError(t, weigh(m, data), "%T", m)
	}

	a, b := listen(t, Config{}), listen(t, Config{})
	b.sees(map[string]string{"a": a.address})
	l := &lane{to: b, s: a.mustDial(b)}
	require.False(t, l.delivered(
		stranger.Changed(stranger.Batch(b.address, "x", &structpb.ListValue{}),
			func(b *remote.MessageBatch) {
				b.Envelopes[0].MessageData = many(1, nil, size/2)
			})))
	require.True(t, l.delivered(stranger.Batch(b.address, "x", list)))
}

// TestBounds_PackedListsInPiecesAreNotDecoded covers lists for which the decoder takes quadratic
// time: 747 kB took more than 22 s. Package linear has the rule.
func TestBounds_PackedListsInPiecesAreNotDecoded(t *testing.T) {
	g, err := New(Config{}, trusting())
	require.NoError(t, err)
	for _, size := range []int{747 << 10, small, 1500} {
		require.Empty(t, receiveAll(g, pieces(size, 1)), "%d bytes", size)
	}
	require.Empty(t, receiveAll(g, pieces(1500, 1000)), "many messages")
	require.Len(t, receiveAll(g, pieces(90, 1000)), 1000, "short lists")
}

// pieces returns a batch of messages of a size that consist of lists of numbers in pieces.
func pieces(size, messages int) []byte {
	b := stranger.Batch("127.0.0.1:8", "x", &descriptorpb.SourceCodeInfo_Location{})
	piece := []byte{0x0a, 1, 1} // of location.path
	b.Envelopes[0].MessageData = bytes.Repeat(piece, size/len(piece))
	b.Envelopes = slices.Repeat(b.Envelopes, messages)
	return mustMarshal(stranger.Send(b))
}

// TestBounds_TheEstimateFitsTheDecoder compares the calculated memory with what is allocated.
func TestBounds_TheEstimateFitsTheDecoder(t *testing.T) {
	entries := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for i := range 20_000 {
		entries.Fields[fmt.Sprint(i)] = structpb.NewBoolValue(true)
	}
	for name, c := range map[string]struct {
		m    proto.Message
		data []byte
	}{
		"messages":       {&structpb.ListValue{}, bytes.Repeat(number, 50_000)},
		"texts":          {&fieldmaskpb.FieldMask{}, bytes.Repeat([]byte{0x0a, 1, 'a'}, 50_000)},
		"numbers":        {&descriptorpb.FileDescriptorProto{}, bytes.Repeat([]byte{10 << 3, 1}, 50_000)},
		"packed numbers": {&descriptorpb.SourceCodeInfo_Location{}, many(1, make([]byte, 50_000), 1)},
		"unknown":        {&wrapperspb.StringValue{}, bytes.Repeat([]byte{0x48, 1}, 50_000)},
		"entries":        {&structpb.Struct{}, mustMarshal(entries)},
		"bytes":          {&wrapperspb.BytesValue{}, mustMarshal(wrapperspb.Bytes(make([]byte, 50_000)))},
	} {
		fields := math.MaxInt
		a := allowance{memory: 1 << 30, fields: &fields}
		require.NoError(t, a.message(shapeOf(c.m.ProtoReflect().Descriptor()), c.data, 0))
		estimate := 1<<30 - a.memory
		decode := func() { require.NoError(t, proto.Unmarshal(c.data, c.m)) }
		decode() // the first time takes more
		taken := float64(allocated(decode))
		t.Logf("%s: estimate %d, allocated %.0f", name, estimate, taken)
		require.Greater(t, float64(estimate), taken/3, name) // a slice is copied when it grows
		require.Less(t, float64(estimate), taken*2, name)
	}
}
