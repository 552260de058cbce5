//go:build linux

package guard

import (
	"bytes"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/concord-go/concord/internal/wire"
	"github.com/concord-go/concord/node/internal/stranger"
	pb "github.com/concord-go/concord/proto"
)

// Bounds of the processor time for a batch. They are some ten times what the costliest batches of
// the size take, so that only time out of proportion exceeds them.
const (
	timeOfBatch = 5 * time.Millisecond
	timeOfByte  = 400 * time.Nanosecond
)

// FuzzTime checks that what a peer sends takes processor time in proportion to its size, whether it
// is refused, or passes and is decoded. Each input is a part that is repeated inside a message.
func FuzzTime(f *testing.F) {
	types := []proto.Message{&structpb.ListValue{}, &structpb.Struct{},
		&descriptorpb.FileDescriptorProto{}, &descriptorpb.SourceCodeInfo_Location{},
		&pb.Envelope{}, &pb.Request{}, &pb.ShardingTable{}, &pb.ShardingConfirmed{}}
	for i := range types {
		f.Add(uint8(i), uint8(0), []byte{0x0a, 1, 1})
		f.Add(uint8(i), uint8(1), []byte{0x12, 3, 0x12, 1, 1})
		f.Add(uint8(i), uint8(9), []byte{0x4a, 2, 0x0a, 0})
		f.Add(uint8(i), uint8(41), []byte{0x0a, 4, 0x0a, 2, 0x0a, 0})
	}
	g, err := New(Config{}, trusting())
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
		if _, ours := m.(*pb.Envelope); ours {
			to = "concord-sharding-x"
			inner = append([]byte{0x10, byte(wire.ShardingTable)}, inner...)
		}
		b := stranger.Batch("127.0.0.1:8", to, m)
		b.Envelopes[0].MessageData = inner
		data := mustMarshal(stranger.Send(b))
		receiveAll(g, data) // types are looked up the first time
		if took := threadTime(t, func() { receiveAll(g, data) }); took >
			timeOfBatch+time.Duration(len(data))*timeOfByte {
			t.Errorf("%T: %d bytes took %v", m, len(data), took)
		}
	})
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
