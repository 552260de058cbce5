package field_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/internal/field"
)

// A message of any length can be read back, and so can the data after it.
func TestEnd_WritesTheLength(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 16_383, 16_384, 1 << 20} {
		inner := make([]byte, n)
		b, at := field.Begin([]byte("x"), 3)
		b = field.Number(field.End(append(b, inner...), at), 15, 1<<40)
		num, typ, size := protowire.ConsumeTag(b[1:])
		require.EqualValues(t, 3, num)
		require.Equal(t, protowire.BytesType, typ)
		got, more := protowire.ConsumeBytes(b[1+size:])
		require.Equal(t, inner, got, n)
		_, _, tag := protowire.ConsumeTag(b[1+size+more:])
		v, _ := protowire.ConsumeVarint(b[1+size+more+tag:])
		require.EqualValues(t, uint64(1<<40), v)
	}
}

// Zero values are omitted, and packed lists equal those of generated code.
func TestFields(t *testing.T) {
	b := field.Number(field.Flag(field.Fixed(field.Text(nil, 4, ""), 3, 0), 2, false), 1, 0)
	b = field.Numbers(field.Fixeds[uint64](b, 5, nil), 6, nil)
	require.Empty(t, b)
	require.Equal(t, []byte{0x2a, 8, 7, 0, 0, 0, 0, 0, 0, 0}, field.Fixeds(nil, 5, []uint64{7}))
	require.Equal(t, []byte{0x2a, 4, 7, 0, 0, 0}, field.Fixed32s(nil, 5, []uint32{7}))
	require.Equal(t, []byte{0x32, 3, 1, 0x80, 1}, field.Numbers(nil, 6, []uint64{1, 128}))
	require.Equal(t, []byte{0x22, 0}, field.Message(nil, 4, ""))
}
