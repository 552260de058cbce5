//go:build linux

package guard

import (
	"bytes"
	"flag"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// Bounds of the processor time. Those of a member are some ten times what the costliest batches of
// the size take, so that only time out of proportion exceeds them.
const (
	timeOfStranger = 10 * time.Millisecond
	timeOfBatch    = 5 * time.Millisecond
	timeOfByte     = 400 * time.Nanosecond
)

// FuzzTime checks that what a peer sends takes processor time in proportion to its size, and that
// of a stranger 10 ms at most, whether it is refused, or passes and is decoded. Each input is a
// part that is repeated inside a message. Times are compared only while fuzzing.
func FuzzTime(f *testing.F) {
	types := []proto.Message{&structpb.ListValue{}, &structpb.Struct{},
		&descriptorpb.FileDescriptorProto{}, &descriptorpb.SourceCodeInfo_Location{},
		&pb.Envelope{}, &pb.Request{}, &pb.ShardingTable{}, &pb.ShardingConfirmed{},
		&pb.Hello{}, &pb.Others{}, &actor.Watch{}, &fieldmaskpb.FieldMask{}}
	for i := range types {
		f.Add(uint8(i), uint8(0), []byte{0x0a, 1, 1})
		f.Add(uint8(i), uint8(1), []byte{0x12, 3, 0x12, 1, 1})
		f.Add(uint8(i), uint8(9), []byte{0x4a, 2, 0x0a, 0})
		f.Add(uint8(i), uint8(41), []byte{0x0a, 4, 0x0a, 2, 0x0a, 0})
		f.Add(uint8(i), uint8(60), []byte{0x0b, 0x12, 0, 0x0c})
	}
	member, err := New(Config{}, trusting())
	require.NoError(f, err)
	other, err := New(Config{Public: []string{"x"}}, quiet())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, of, how uint8, part []byte) {
		if len(part) == 0 {
			return
		}
		m := types[int(of)%len(types)]
		size := []int{1 << 10, small, small + 1, 128 << 10, 700 << 10}[int(how)%5]
		inner := bytes.Repeat(part, 1+size/len(part))
		switch how / 5 % 4 {
		case 1:
			inner = bytes.Repeat(field(nil, 1, inner[:min(len(inner), 100)]), 1+size/100)
		case 2:
			inner = field(nil, 7, inner)
		case 3:
			inner = append(field(nil, 4, []byte("a")), append([]byte{0x10, how},
				field(nil, 7, inner)...)...)
		}
		to := "x"
		switch m.(type) {
		case *pb.Envelope:
			to = "concord-sharding-x"
			inner = append([]byte{0x10, byte(wire.ShardingTable)}, inner...)
		case *pb.Hello, *pb.Others:
			to, inner = membership.ActorName, append([]byte{0x10, byte(wire.MembershipHello)},
				field(field(nil, 7, inner), 4, []byte("a"))...)
			m = &pb.Envelope{}
		}
		b := stranger.Batch("127.0.0.1:8", to, m)
		b.Envelopes[0].MessageData = inner
		if how&64 != 0 { // in many messages
			b.Envelopes[0].MessageData = inner[:1+len(inner)/maxEnvelopes]
			b.Envelopes = slices.Repeat(b.Envelopes, maxEnvelopes)
		}
		data := mustMarshal(stranger.Send(b))
		inProportion := timeOfBatch + time.Duration(len(data))*timeOfByte
		takes(t, inProportion, len(data), func() { receiveAll(member, data) })
		takes(t, timeOfStranger, len(data), func() { receiveAll(other, data) })
		first := bytes.Clone(data[:min(len(data), maxFirst)])
		first[0] = 2<<3 | 2 // a ConnectRequest
		takes(t, timeOfStranger, len(first), func() { _, _, _ = other.introduction(first) })
		raw := inner[:min(len(inner), maxFirst)]
		takes(t, timeOfStranger, len(raw), func() { _, _, _ = other.introduction(raw) })
	})
}

// takes checks that f takes at most some processor time, in the best of a few calls: the first ones
// look types up, and garbage collection may help itself to some.
func takes(t *testing.T, most time.Duration, size int, f func()) {
	t.Helper()
	var took time.Duration
	for range 5 {
		if took = threadTime(t, f); took <= most {
			return
		}
	}
	if fuzzing := flag.Lookup("test.fuzz"); fuzzing != nil && fuzzing.Value.String() != "" ||
		flag.Lookup("test.fuzzworker").Value.String() == "true" {
		t.Errorf("%d bytes took %v, at most %v", size, took, most)
	}
}

// threadTime returns the processor time that f takes on its own thread.
func threadTime(t *testing.T, f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	now := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_THREAD, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := now()
	f()
	return now() - before
}
