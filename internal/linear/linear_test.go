package linear

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	pb "github.com/concord-go/concord/proto"
)

func field(n protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), value)
}

func check(m proto.Message, b []byte) error { return Check(m.ProtoReflect().Descriptor(), b) }

func TestCheck_RefusesListsInManyPieces(t *testing.T) {
	location, file := &descriptorpb.SourceCodeInfo_Location{}, &descriptorpb.FileDescriptorProto{}
	piece := []byte{0x0a, 1, 1} // of location.path
	pieces := bytes.Repeat(piece, 747<<10/len(piece))
	require.ErrorIs(t, check(location, pieces), ErrPieces)
	require.ErrorIs(t, check(location, pieces[:3000]), ErrPieces)
	require.ErrorIs(t, check(location, bytes.Repeat(append([]byte{8, 1}, piece...), 1000)),
		ErrPieces, "single numbers between the pieces")
	require.ErrorIs(t, check(file, field(9, field(1, pieces))), ErrPieces, "in other messages")
	// A message that occurs again in a field that holds one continues its lists.
	require.ErrorIs(t, check(&pb.Request{}, bytes.Repeat(field(2, []byte{0x12, 1, 1}), 1000)),
		ErrPieces)
	require.ErrorIs(t, Unmarshal(pieces, location), ErrPieces)
}

func TestCheck_AcceptsWhatEncodersWrite(t *testing.T) {
	large := &descriptorpb.SourceCodeInfo_Location{Path: make([]int32, 100_000)}
	b, err := proto.Marshal(large)
	require.NoError(t, err)
	got := &descriptorpb.SourceCodeInfo_Location{}
	require.NoError(t, Unmarshal(b, got))
	require.True(t, proto.Equal(large, got))
	require.NoError(t, Unmarshal(append(b, b...), got), "merged")
	require.Len(t, got.Path, 200_000)

	info := &descriptorpb.SourceCodeInfo{}
	for range 10_000 {
		info.Location = append(info.Location,
			&descriptorpb.SourceCodeInfo_Location{Path: []int32{1, 2, 3}, Span: []int32{4}})
	}
	b, err = proto.Marshal(info)
	require.NoError(t, err)
	require.NoError(t, check(info, b), "many lists of one piece each")
	require.NoError(t, check(&descriptorpb.SourceCodeInfo_Location{},
		bytes.Repeat([]byte{8, 1}, 100_000)), "numbers that are not packed")
	require.NoError(t, check(&descriptorpb.SourceCodeInfo_Location{},
		bytes.Repeat([]byte{0x0a, 1, 1}, 30)), "a short list")
	require.False(t, Lists(wrapperspb.String("").ProtoReflect().Descriptor()))
	require.Error(t, Unmarshal(bytes.Repeat([]byte{0xff}, 100), large), "no message")
	require.Error(t, check(large, bytes.Repeat([]byte{0x0b}, 1<<20)), "groups without end")
}
