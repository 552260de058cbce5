package node_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// batch holds one message for an actor. The type of the targets differs between versions of Proto.Actor.
func batch(target string, m proto.Message) *remote.MessageBatch {
	data, _ := proto.Marshal(m)
	b := &remote.MessageBatch{
		TypeNames: []string{string(proto.MessageName(m))},
		Envelopes: []*remote.MessageEnvelope{{MessageData: data}},
	}
	field := b.ProtoReflect().Descriptor().Fields().ByName("targets")
	list := b.ProtoReflect().Mutable(field).List()
	if field.Kind() == protoreflect.StringKind {
		list.Append(protoreflect.ValueOfString(target))
		return b
	}
	e := list.NewElement()
	pid := e.Message()
	pid.Set(pid.Descriptor().Fields().ByName("Id"), protoreflect.ValueOfString(target))
	pid.Set(pid.Descriptor().Fields().ByName("Address"), protoreflect.ValueOfString("nonhost")) // at the receiver
	list.Append(e)
	return b
}

func changed(b *remote.MessageBatch, f func(*remote.MessageBatch)) *remote.MessageBatch {
	f(b)
	return b
}

// stranger listens, and claims every stream for its own: so it is who it says, but no member. It returns
// its address.
func stranger(t *testing.T) string {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
		return ss.SendMsg(struct{}{}) // nil would be sent as nothing
	}), grpc.ForceServerCodecV2(yes{}))
	done := make(chan struct{})
	go func() { _ = s.Serve(lis); close(done) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return lis.Addr().String()
}

// yes is a codec that says it, whatever is sent.
type yes struct{}

func (yes) Name() string                         { return "proto" }
func (yes) Marshal(any) (mem.BufferSlice, error) { return mem.BufferSlice{mem.SliceBuffer{1}}, nil }
func (yes) Unmarshal(mem.BufferSlice, any) error { return nil }

func introduction(address string) *remote.RemoteMessage {
	return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_ConnectRequest{ConnectRequest: &remote.ConnectRequest{
		ConnectionType: &remote.ConnectRequest_ServerConnection{ServerConnection: &remote.ServerConnection{Address: address}},
	}}}
}

// TestHostilePeer sends a member what crashes an unguarded one, or stops its actors.
func TestHostilePeer(t *testing.T) {
	p := launch(t, specs(t, 1)[0])
	conn, err := grpc.NewClient(p.started(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	client := remote.NewRemotingClient(conn)
	self := stranger(t)

	hello := func(text string) *remote.MessageBatch { return batch("watcher", wrapperspb.String(text)) }
	// send sends on a stream of its own and returns how it ended; nil when it was still open when the next
	// message on it had arrived.
	n := 0
	send := func(b *remote.MessageBatch) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		stream, err := client.Receive(ctx)
		require.NoError(t, err)
		wrap := func(b *remote.MessageBatch) *remote.RemoteMessage {
			return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: b}}
		}
		require.NoError(t, stream.Send(introduction(self)))
		_, err = stream.Recv()
		require.NoError(t, err)
		require.NoError(t, stream.Send(wrap(b)))
		n++
		text := fmt.Sprint("after ", n)
		_ = stream.Send(wrap(hello(text)))
		ended := make(chan error, 1)
		go func() {
			_, err := stream.Recv()
			ended <- err
		}()
		for {
			select {
			case err := <-ended:
				return err
			case <-time.After(5 * time.Millisecond):
			}
			for _, r := range p.reports("got") {
				if r.Text == text {
					return nil
				}
			}
		}
	}

	_, err = client.ListProcesses(t.Context(), &remote.ListProcessesRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))
	_, err = client.GetProcessDiagnostics(t.Context(), &remote.GetProcessDiagnosticsRequest{})
	require.Equal(t, codes.Unimplemented, status.Code(err))

	for name, b := range map[string]*remote.MessageBatch{
		"target":          changed(hello("x"), func(b *remote.MessageBatch) { b.Envelopes[0].Target = 7 }),
		"negative target": changed(hello("x"), func(b *remote.MessageBatch) { b.Envelopes[0].Target = -1 }),
		"type":            changed(hello("x"), func(b *remote.MessageBatch) { b.Envelopes[0].TypeId = 7 }),
		"sender":          changed(hello("x"), func(b *remote.MessageBatch) { b.Envelopes[0].Sender = 7 }),
		"serializer":      changed(hello("x"), func(b *remote.MessageBatch) { b.Envelopes[0].SerializerId = 77 }),
	} {
		require.Equal(t, codes.InvalidArgument, status.Code(send(b)), name)
	}
	for name, b := range map[string]*remote.MessageBatch{
		"unknown type":  changed(hello("x"), func(b *remote.MessageBatch) { b.TypeNames[0] = "no.such.Type" }),
		"stop":          batch("watcher", &actor.Stop{}),
		"poison":        batch("watcher", &actor.PoisonPill{}),
		"empty watch":   batch("watcher", &actor.Watch{}),
		"empty unwatch": batch("watcher", &actor.Unwatch{}),
		"terminated":    batch("watcher", &actor.Terminated{}),
	} {
		require.NoError(t, send(b), "%s: only the message is refused, not those after it", name)
	}
	require.NoError(t, send(hello("still alive")))
	require.Empty(t, p.reports("watcher stopped"))
	require.Empty(t, p.reports("watcher restarted"))
	require.Zero(t, p.stop())
}
