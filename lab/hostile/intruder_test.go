package hostile_test

import (
	"crypto/tls"
	"sync"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// intruder is a stranger: it reaches the ports of the members but is not a member.
type intruder struct {
	t       *testing.T
	w       *world
	address string // where it listens and vouches for everything
	lanes   map[string]*lane

	mu    sync.Mutex
	heard map[uint32]uint64 // incarnation of the sender, by manifest
	asked map[uint64]uint64 // sequence of the last hello that requested a permit, by its sender
}

func newIntruder(t *testing.T, w *world) *intruder {
	s := &intruder{t: t, w: w, heard: map[uint32]uint64{}, asked: map[uint64]uint64{}}
	s.address = stranger.Listen(t, listener{s: s})
	return s
}

// listener records the answers of members.
type listener struct {
	remote.UnimplementedRemotingServer
	s *intruder
}

func (l listener) Receive(stream remote.Remoting_ReceiveServer) error {
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if m.GetConnectRequest() != nil {
			_ = stream.Send(&remote.RemoteMessage{
				MessageType: &remote.RemoteMessage_ConnectResponse{
					ConnectResponse: &remote.ConnectResponse{}}})
		}
		for _, e := range m.GetMessageBatch().GetEnvelopes() {
			var env pb.Envelope
			if proto.Unmarshal(e.MessageData, &env) == nil {
				l.s.mu.Lock()
				l.s.heard[env.Manifest] = env.From
				var h pb.Hello
				if env.Manifest == uint32(wire.MembershipHello) &&
					proto.Unmarshal(env.Payload, &h) == nil && h.Yield {
					l.s.asked[env.From] = h.Sequence
				}
				l.s.mu.Unlock()
			}
		}
	}
}

func (s *intruder) incarnation(m wire.Manifest) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heard[uint32(m)]
}

// credentials returns the best credentials that a stranger can have: none, or TLS with a
// certificate of another authority.
func (s *intruder) credentials() credentials.TransportCredentials {
	if s.w.mode != tlsMode {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13})
}

func (s *intruder) connect(to *process, options ...grpc.DialOption) *grpc.ClientConn {
	return stranger.Dial(s.t, to.address, append([]grpc.DialOption{
		grpc.WithTransportCredentials(s.credentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(stranger.Bytes{}),
			grpc.MaxCallSendMsgSize(1<<30)),
	}, options...)...)
}

// lane is a stream of the stranger.
type lane struct {
	grpc.ClientStream
	s *intruder
}

// open opens a stream and introduces the stranger as from. The members may have rejected it.
func (s *intruder) open(to *process, from string) *lane {
	l := s.bare(s.connect(to))
	l.push(stranger.Introduce(from))
	return l
}

// lane returns a stream that stays open, by its name and receiver.
func (s *intruder) lane(to *process, name string) *lane {
	key := to.address + " " + name
	if l := s.lanes[key]; l != nil && l.ClientStream != nil && l.Context().Err() == nil {
		return l
	}
	if s.lanes == nil {
		s.lanes = map[string]*lane{}
	}
	s.lanes[key] = s.open(to, s.address)
	return s.lanes[key]
}

// bare opens a stream and sends nothing.
func (s *intruder) bare(cc *grpc.ClientConn) *lane {
	stream, err := stranger.Stream(s.t, cc)
	if err != nil {
		return &lane{nil, s}
	}
	return &lane{stream, s}
}

// push sends a message. It ignores errors, since members should reject the message.
func (l *lane) push(m any) {
	if l.ClientStream != nil {
		_ = l.SendMsg(m)
	}
}

func (l *lane) batch(b *remote.MessageBatch) {
	l.push(stranger.Send(b))
}

// settle waits until all messages sent have been handled, or the stream has ended.
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

// sealed returns a message of Concord in the name of a member.
func sealed(member string, from, to uint64, m wire.Manifest, payload proto.Message) proto.Message {
	data, _ := proto.Marshal(payload)
	return wire.Seal(wire.Header{Cluster: "hostile", Member: member, From: from, To: to}, m, data)
}

// learn says hello to the victim, which answers strangers occasionally. The answer is all that a
// stranger that does not read the traffic can know about the victim.
func (s *intruder) learn() {
	l := s.open(s.w.victim(), s.address)
	deadline := time.Now().Add(patience)
	for n := uint64(0); time.Now().Before(deadline); n++ {
		l.batch(stranger.Batch(s.w.victim().address, membershipActor,
			sealed(s.name(), 7, 0, wire.MembershipHello,
				&pb.Hello{Address: s.address, Sequence: 1 + n, Size: 1, Answer: true})))
		time.Sleep(5 * time.Millisecond)
		if s.w.mode != plainMode || s.incarnation(wire.MembershipHello) != 0 {
			l.settle()
			return
		}
		time.Sleep(200 * time.Millisecond) // the victim answers a few per second
	}
	s.t.Fatal("the victim does not answer")
}

// name returns the member id that the stranger gives itself.
func (s *intruder) name() string { return "stranger at " + s.address }
