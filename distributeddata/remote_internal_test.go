package distributeddata

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/concord-go/concord/crdt"
)

// Members accept protobuf messages only, and no protobuf message is a request. So another process
// can change keys only by replication, as a member.
func TestRemote_NoTypeOnTheWireIsARequest(t *testing.T) {
	_, ok := asRequest(NewKey("key", crdt.PNCounter{}).GetMessage())
	require.True(t, ok)
	_, err := protoregistry.GlobalTypes.FindMessageByName("concord.v1.Envelope")
	require.NoError(t, err, "the messages of replication are among those that are looked at")
	protoregistry.GlobalTypes.RangeMessages(func(m protoreflect.MessageType) bool {
		_, ok := asRequest(m.New().Interface())
		require.False(t, ok, m.Descriptor().FullName())
		return true
	})
}
