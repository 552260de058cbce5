package hostile_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// stranger reaches the ports of the members and belongs to none.
type stranger struct {
	t       *testing.T
	w       *world
	address string // where it listens, and vouches for everything

	mu    sync.Mutex
	heard map[uint32]uint64 // the incarnation of who sent a manifest
}

// bytesCodec sends and takes bytes as they are.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case []byte:
		return mem.BufferSlice{mem.SliceBuffer(v)}, nil
	case proto.Message:
		data, err := proto.Marshal(v)
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	}
	return nil, fmt.Errorf("%T", v)
}

func (bytesCodec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *[]byte:
		*v = data.Materialize()
		return nil
	case proto.Message:
		return proto.Unmarshal(data.Materialize(), v)
	}
	return nil
}

func newStranger(t *testing.T, w *world) *stranger {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &stranger{t: t, w: w, address: lis.Addr().String(), heard: map[uint32]uint64{}}
	srv := grpc.NewServer(grpc.ForceServerCodecV2(bytesCodec{}), grpc.UnknownServiceHandler(func(_ any, ss grpc.ServerStream) error {
		return ss.SendMsg([]byte{1}) // yes, that stream is mine
	}))
	remote.RegisterRemotingServer(srv, listener{s: s})
	done := make(chan struct{})
	go func() { _ = srv.Serve(lis); close(done) }()
	t.Cleanup(func() { srv.Stop(); <-done })
	return s
}

// listener hears what members answer.
type listener struct {
	remote.UnimplementedRemotingServer
	s *stranger
}

func (l listener) Receive(stream remote.Remoting_ReceiveServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetConnectRequest() != nil {
			_ = stream.Send(&remote.RemoteMessage{MessageType: &remote.RemoteMessage_ConnectResponse{ConnectResponse: &remote.ConnectResponse{}}})
		}
		for _, e := range m.GetMessageBatch().GetEnvelopes() {
			var env pb.Envelope
			if proto.Unmarshal(e.MessageData, &env) == nil {
				l.s.mu.Lock()
				l.s.heard[env.Manifest] = env.From
				l.s.mu.Unlock()
			}
		}
	}
}

func (s *stranger) incarnation(m wire.Manifest) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard[uint32(m)]
}

// credentials are the best that a stranger has: none, or TLS with a certificate of another authority.
func (s *stranger) credentials() credentials.TransportCredentials {
	if s.w.mode != tlsMode {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}) //nolint:gosec // a stranger
}

func (s *stranger) connect(to *process, options ...grpc.DialOption) *grpc.ClientConn {
	options = append([]grpc.DialOption{
		grpc.WithTransportCredentials(s.credentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(bytesCodec{}), grpc.MaxCallSendMsgSize(1<<30)),
	}, options...)
	cc, err := grpc.NewClient("passthrough:///"+to.address, options...)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = cc.Close() })
	return cc
}

// lane is a stream of the stranger.
type lane struct {
	grpc.ClientStream
	s *stranger
}

// open opens a stream, and introduces the stranger as from. It may have been refused.
func (s *stranger) open(to *process, from string) *lane {
	l := s.bare(s.connect(to))
	l.push(introduce(from))
	return l
}

// bare opens a stream and says nothing.
func (s *stranger) bare(cc *grpc.ClientConn) *lane {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/remote.Remoting/Receive")
	if err != nil {
		return &lane{nil, s}
	}
	return &lane{stream, s}
}

// push sends; that it is refused is what the members hope for.
func (l *lane) push(m any) {
	if l.ClientStream != nil {
		_ = l.SendMsg(m)
	}
}

func (l *lane) batch(b *remote.MessageBatch) {
	l.push(&remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: b}})
}

// settle waits until everything sent has been handled, or the stream has ended.
func (l *lane) settle() {
	if l.ClientStream == nil {
		return
	}
	_ = l.CloseSend()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			var b []byte
			if l.RecvMsg(&b) != nil {
				return
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
	}
}

func introduce(address string) *remote.RemoteMessage {
	return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_ConnectRequest{ConnectRequest: &remote.ConnectRequest{
		ConnectionType: &remote.ConnectRequest_ServerConnection{ServerConnection: &remote.ServerConnection{Address: address}},
	}}}
}

// message holds one message for an actor. Versions of Proto.Actor name targets in different ways.
func message(address, id string, m proto.Message) *remote.MessageBatch {
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

func changed(b *remote.MessageBatch, f func(*remote.MessageBatch)) *remote.MessageBatch {
	f(b)
	return b
}

// sealed is a message of Concord in the name of a member.
func sealed(member string, from, to uint64, m wire.Manifest, payload proto.Message) proto.Message {
	data, _ := proto.Marshal(payload)
	return wire.Seal(wire.Header{Cluster: "hostile", Member: member, From: from, To: to}, m, data)
}

// learn says hello to the victim, which answers strangers now and then: what it says is all that somebody who
// does not read the traffic can know of it.
func (s *stranger) learn() {
	l := s.open(s.w.victim(), s.address)
	deadline := time.Now().Add(patience)
	for n := uint64(0); time.Now().Before(deadline); n++ {
		l.batch(message(s.w.victim().address, membershipActor, sealed(s.name(), 7, 0, wire.MembershipHello,
			&pb.Hello{Address: s.address, Sequence: 1 + n, Size: 1, Answer: true})))
		time.Sleep(5 * time.Millisecond)
		if s.w.mode != plainMode || s.incarnation(wire.MembershipHello) != 0 {
			l.settle()
			return
		}
		time.Sleep(200 * time.Millisecond) // the victim answers some a second
	}
	s.t.Fatal("the victim does not answer")
}

// name is the member id that it gives itself.
func (s *stranger) name() string { return "stranger at " + s.address }
