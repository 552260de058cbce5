// Package stranger speaks Proto.Actor's remoting without Proto.Actor, for tests of how members
// treat peers that are not members.
package stranger

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// patience bounds the lifetime of a stream.
const patience = time.Minute

// Dial connects to a member until the test ends, without TLS unless an option enables it.
func Dial(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
		options...)
	cc, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// Stream opens a remoting stream and sends nothing on it.
func Stream(t testing.TB, cc *grpc.ClientConn) (grpc.ClientStream, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
		"/remote.Remoting/Receive")
}

// Introduce returns the first message of a stream, which names the address of its peer.
func Introduce(address string) *remote.RemoteMessage {
	return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_ConnectRequest{
		ConnectRequest: &remote.ConnectRequest{
			ConnectionType: &remote.ConnectRequest_ServerConnection{
				ServerConnection: &remote.ServerConnection{Address: address}},
		}}}
}

// Send returns a later message of a stream.
func Send(b *remote.MessageBatch) *remote.RemoteMessage {
	return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: b}}
}

// Batch returns a batch with one message for an actor at an address. The type of the targets
// differs between versions of Proto.Actor.
func Batch(address, id string, m proto.Message) *remote.MessageBatch {
	data, _ := proto.Marshal(m)
	b := &remote.MessageBatch{
		TypeNames: []string{string(proto.MessageName(m))},
		Envelopes: []*remote.MessageEnvelope{{MessageData: data}},
	}
	field := b.ProtoReflect().Descriptor().Fields().ByName("targets")
	list := b.ProtoReflect().Mutable(field).List()
	if field.Kind() == protoreflect.StringKind {
		list.Append(protoreflect.ValueOfString(id))
		return b
	}
	list.Append(protoreflect.ValueOfMessage(actor.NewPID(address, id).ProtoReflect()))
	return b
}

// Changed returns b after f has changed it.
func Changed(b *remote.MessageBatch, f func(*remote.MessageBatch)) *remote.MessageBatch {
	f(b)
	return b
}

// Listen serves until the test ends, and confirms every stream as its own when asked, so its
// address counts as proven. hears, which may be nil, receives the streams opened to it. Listen
// returns its address.
func Listen(t testing.TB, hears remote.RemotingServer) (address string) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ListenOn(t, lis, hears)
}

// ListenOn is Listen at an address of the caller's choice.
func ListenOn(t testing.TB, lis net.Listener, hears remote.RemotingServer) (address string) {
	t.Helper()
	s := grpc.NewServer(grpc.ForceServerCodecV2(Bytes{}), grpc.UnknownServiceHandler(
		func(_ any, ss grpc.ServerStream) error {
			return ss.SendMsg([]byte{1}) // yes, that stream is mine
		}))
	if hears != nil {
		remote.RegisterRemotingServer(s, hears)
	}
	done := make(chan struct{})
	go func() { _ = s.Serve(lis); close(done) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return lis.Addr().String()
}

// Bytes is a codec that passes bytes through unchanged and encodes messages as gRPC does.
type Bytes struct{}

// Name implements encoding.CodecV2.
func (Bytes) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (Bytes) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case []byte:
		return mem.BufferSlice{mem.SliceBuffer(v)}, nil
	case proto.Message:
		data, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	}
	return nil, fmt.Errorf("%T", v)
}

// Unmarshal implements encoding.CodecV2.
func (Bytes) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = data.Materialize()
		return nil
	case proto.Message:
		return proto.Unmarshal(data.Materialize(), v)
	}
	return nil
}
