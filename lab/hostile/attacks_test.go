package hostile_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/testkit/pki"
)

// Actors of a member.
const (
	membershipActor = "concord-membership"
	managerActor    = "concord-singleton-jobs"
	proxyActor      = "concord-singleton-proxy-jobs"
	replicatorActor = "concord-replicator-ddata"
	gossipActor     = "gossip"
)

// attack is an attack that every member must survive unharmed.
type attack struct {
	name   string
	sample bool // also part of "make test"
	do     func(*intruder)
}

// attacks returns all attacks.
func attacks() []attack {
	all := append(crashers(), forgeries()...)
	all = append(all, floods()...)
	all = append(all, memory()...)
	return append(all, connections()...)
}

// crashers are messages that crash an unguarded process, or end its actors.
func crashers() (all []attack) {
	one := func(name string, b func(to *process) *remote.MessageBatch) {
		all = append(all, attack{name, true, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			l.batch(b(s.w.victim()))
			l.settle()
		}})
	}
	with := func(name string, f func(*remote.MessageBatch)) {
		one(name, func(to *process) *remote.MessageBatch {
			return stranger.Changed(stranger.Batch(to.address, "door", wrapperspb.Bool(true)), f)
		})
	}
	with("target out of range", func(b *remote.MessageBatch) { b.Envelopes[0].Target = 7 })
	with("target below zero", func(b *remote.MessageBatch) { b.Envelopes[0].Target = -1 })
	with("type out of range", func(b *remote.MessageBatch) {
		b.Envelopes[0].TypeId = math.MaxInt32
	})
	with("sender out of range", func(b *remote.MessageBatch) { b.Envelopes[0].Sender = 7 })
	with("serializer 77", func(b *remote.MessageBatch) { b.Envelopes[0].SerializerId = 77 })
	with("unknown type", func(b *remote.MessageBatch) { b.TypeNames[0] = "no.such.Type" })
	with("wrong bytes", func(b *remote.MessageBatch) { b.Envelopes[0].MessageData = []byte{0xff} })
	for name, m := range map[string]proto.Message{
		"stop": &actor.Stop{}, "poison": &actor.PoisonPill{}, "watch by nobody": &actor.Watch{},
		"unwatch by nobody": &actor.Unwatch{}, "termination of nobody": &actor.Terminated{},
	} {
		one(name, func(to *process) *remote.MessageBatch {
			return stranger.Batch(to.address, "door", m)
		})
	}
	all = append(all, attack{"unary calls", true, func(s *intruder) {
		cc := s.connect(s.w.victim())
		for _, method := range []string{"ListProcesses", "GetProcessDiagnostics"} {
			var out []byte
			require.Error(s.t, cc.Invoke(s.t.Context(), "/remote.Remoting/"+method, []byte{}, &out))
		}
	}})
	all = append(all, attack{"random bytes as messages", false, func(s *intruder) {
		for range 50 {
			l := s.open(s.w.victim(), s.address)
			b := make([]byte, 200)
			_, _ = rand.Read(b)
			l.push(b)
			l.settle()
		}
	}})
	return all
}

// pair is the receiver of a forged message, and the member in whose name it is sent.
type pair struct {
	w        *world
	to, of   *process
	stranger string // its address
	was      status // status of the member of
	round    uint64
}

// forgeries speak in the name of other members: to every member in the name of every other, on
// streams that are introduced as the stranger's own, as that member's, and as the receiver's. The
// stranger knows everything except the traffic.
func forgeries() (all []attack) {
	rounds := func(name string, sample bool, n uint64, target string,
		m func(p pair) proto.Message) {
		all = append(all, attack{name, sample, func(s *intruder) {
			for round := range n {
				if round > 0 {
					time.Sleep(600 * time.Millisecond) // verdicts at one moment count once
				}
				s.everywhere(func(p pair, as string) {
					p.round = round
					l := s.open(p.to, as)
					l.batch(stranger.Batch(p.to.address, target, m(p)))
					l.settle()
				})
			}
		}})
	}
	forge := func(name string, sample bool, target string, m func(p pair) proto.Message) {
		rounds(name, sample, 1, target, m)
	}
	// of returns a message of Concord in the name of another member.
	of := func(m wire.Manifest, payload proto.Message) func(p pair) proto.Message {
		return func(p pair) proto.Message {
			return sealed(p.was.Self, p.was.Incarnation, 0, m, payload)
		}
	}
	forge("termination of the instance", true, managerActor, func(p pair) proto.Message {
		return &actor.Terminated{Who: actor.NewPID(p.to.address, managerActor+"/1-1")}
	})
	forge("termination of the instance, without address", false, managerActor,
		func(pair) proto.Message {
			return &actor.Terminated{Who: actor.NewPID("nonhost", managerActor+"/1-1")}
		})
	forge("watch in the name of the receiver", false, "door", func(p pair) proto.Message {
		return &actor.Watch{Watcher: actor.NewPID(p.to.address, managerActor)}
	})
	rounds("hello that disowns", true, 4, membershipActor, func(p pair) proto.Message {
		return sealed(p.was.Self, p.was.Incarnation, 0, wire.MembershipHello,
			&pb.Hello{Address: p.of.address, Sequence: 1<<40 + p.round, Stamp: p.was.Stamp})
	})
	forge("hello that leaves", false, membershipActor, func(p pair) proto.Message {
		return sealed(p.was.Self, p.was.Incarnation, 0, wire.MembershipHello,
			&pb.Hello{Address: p.of.address, Sequence: 1 << 41, Stamp: p.was.Stamp, Leaving: true})
	})
	rounds("hello of a new process, the oldest of all", true, 2, membershipActor,
		func(p pair) proto.Message {
			return sealed(p.was.Self, 7, 0, wire.MembershipHello,
				&pb.Hello{Address: p.of.address, Sequence: 1 + p.round, Stamp: p.round,
					ListsYou: true, Size: 3})
		})
	forge("addresses named by another", false, membershipActor,
		of(wire.MembershipOthers, &pb.Others{Addresses: []string{"10.255.255.1:1"}}))
	forge("heartbeat of another process", true, replicatorActor, func(p pair) proto.Message {
		return sealed(p.was.Self, 7, 0, wire.ReplicatorBeat, &pb.Beat{Ready: true, Announced: true,
			Leaving: true})
	})
	for _, durable := range []bool{true, false} {
		m, name := wire.ReplicatorBeat, "heartbeats of a stranger"
		if durable {
			m, name = m.OfDurable(), "heartbeats of a stranger, for durable keys"
		}
		all = append(all, attack{name, durable, func(s *intruder) {
			for _, to := range s.w.members {
				l := s.open(to, s.address)
				for range 9 { // an actor that fails as often starts empty
					l.batch(stranger.Batch(to.address, replicatorActor, sealed("nobody", 7, 0, m,
						&pb.Beat{Ready: true, Announced: true})))
				}
				l.settle()
			}
		}})
	}
	forge("members that are gone", true, replicatorActor, func(p pair) proto.Message {
		gone := &pb.Members{Name: p.of.address, Least: 1}
		for _, name := range slices.Sorted(
			slices.Values([]string{p.to.address, p.of.address, p.was.Self})) {
			gone.Members = append(gone.Members, &pb.RememberedMember{
				Name: name, Version: math.MaxUint64, Number: math.MaxUint64, Replica: 7, Stage: 4,
				Order: math.MaxUint64,
			})
		}
		return sealed(p.was.Self, 7, 0, wire.ReplicatorMembers, gone)
	})
	forge("a member leaves the singleton", true, managerActor,
		of(wire.SingletonLeaving, &pb.SingletonLeaving{}))
	forge("a member leaves the singleton, to the proxy", true, proxyActor,
		of(wire.SingletonLeaving, &pb.SingletonLeaving{}))
	rounds("the instance is elsewhere", true, 3, proxyActor, func(p pair) proto.Message {
		return sealed(p.was.Self, p.was.Incarnation, 0, wire.SingletonHost, &pb.SingletonHost{
			Round: 1 + p.round, Token: math.MaxUint64})
	})
	forge("a member abstains", false, "concord-singletons",
		of(wire.SingletonNews, &pb.SingletonNews{Version: math.MaxUint64, Count: 1, Whole: true,
			Words: []*pb.SingletonWord{{Name: "jobs", Sequence: math.MaxUint64, Abstains: true}}}))
	forge("a question from the end of numbers", false, managerActor,
		of(wire.SingletonIdentify, &pb.SingletonIdentify{Round: math.MaxUint64}))
	forge("a topology without members", true, "eventstream", func(pair) proto.Message {
		return &cluster.ClusterTopology{
			Members: []*cluster.Member{{Host: "127.0.0.1", Port: 1, Id: "z"}}}
	})
	forge("an actor of any kind", false, "activator", func(pair) proto.Message {
		return &remote.ActorPidRequest{Kind: "no such kind", Name: "x"}
	})
	placement := "partition-activator"
	forge("a topology without members, for the virtual actors", true, placement,
		func(pair) proto.Message {
			return &cluster.ClusterTopology{
				Members: []*cluster.Member{{Host: "127.0.0.1", Port: 1, Id: "z"}}}
		})
	forge("a termination, for the virtual actors", true, placement, func(p pair) proto.Message {
		return &actor.Terminated{Who: actor.NewPID(p.stranger, "x")}
	})
	forge("an activation of nothing", true, placement, func(pair) proto.Message {
		return &cluster.ActivationRequest{}
	})
	forge("an activation of an unknown kind", false, placement, func(pair) proto.Message {
		return &cluster.ActivationRequest{ClusterIdentity: &cluster.ClusterIdentity{
			Identity: "x", Kind: "no such kind"}}
	})
	forge("gossip of nothing", true, gossipActor, func(pair) proto.Message {
		return &cluster.GossipRequest{}
	})
	forge("gossip that bans a member", true, gossipActor, func(p pair) proto.Message {
		return gossip(p.was.Self)
	})
	forge("gossip that bans its receiver", false, gossipActor, func(p pair) proto.Message {
		for i, m := range p.w.members {
			if m == p.to {
				return gossip(p.w.before[i].Self)
			}
		}
		return nil
	})
	forge("a delivery of nothing", false, "$pubsub-delivery", func(pair) proto.Message {
		return &cluster.DeliverBatchRequestTransport{}
	})
	all = append(all, attack{"answers in place of the singleton", true, answers})
	return append(all, attack{"a large fragment that grants everything", true, largeFragment},
		attack{"a message for somebody else", true, relayed})
}

// answers answers the questions of a member in place of the singleton, under every name that the
// process can be expected to use.
func answers(s *intruder) {
	from, _ := s.w.bystander()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		l := s.open(from, s.address)
		for n := int64(1); ; n++ {
			b := stranger.Batch(from.address, "door", wrapperspb.String("forged"))
			b.Targets, b.Envelopes = b.Targets[:0], nil
			for i := range int64(200) {
				one := stranger.Batch(from.address, "$ask"+strconv.FormatInt((n*200+i)%1000, 36),
					wrapperspb.String("forged"))
				b.Targets = append(b.Targets, one.Targets...)
				e := one.Envelopes[0]
				e.Target = int32(i)
				b.Envelopes = append(b.Envelopes, e)
			}
			l.batch(b)
			select {
			case <-stop:
				l.settle()
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	var err error
	for range 10 {
		var is status
		if is, err = from.status(); err == nil && is.Asked != "" {
			err = errors.New(is.Asked)
		}
		if err != nil {
			break
		}
	}
	close(stop)
	<-done
	require.NoError(s.t, err)
}

// gossip returns a message of Proto.Actor's gossip after which its receiver bans a member.
func gossip(id string) proto.Message {
	banned, _ := anypb.New(&cluster.ClusterTopology{Blocked: []string{id}})
	return &cluster.GossipRequest{FromMemberId: "z", State: &cluster.GossipState{
		Members: map[string]*cluster.GossipMemberState{
			"z": {Values: map[string]*cluster.GossipKeyValue{
				cluster.TopologyKey: {SequenceNumber: 1, Value: banned},
			}},
		},
	}}
}

// everywhere calls f for each pair of members and each way to introduce the stranger.
func (s *intruder) everywhere(f func(p pair, as string)) {
	for _, to := range s.w.members {
		for i, of := range s.w.members {
			if to == of {
				continue
			}
			for _, as := range []string{s.address, of.address, to.address} {
				f(pair{w: s.w, stranger: s.address, to: to, of: of, was: s.w.before[i]}, as)
			}
		}
	}
}

// largeFragment says hello under its true address, which no member lists, with the incarnation that
// it has learned, and makes every claim that would make a member give way.
func largeFragment(s *intruder) {
	l := s.open(s.w.victim(), s.address)
	for i := range uint64(40) { // longer than such claims must last
		h := &pb.Hello{
			Address: s.address, Sequence: 100 + i, Stamp: 1, Size: 1 << 30, Oldest: 1,
			Arbiter: true, DroppedYou: true, Answer: true, Permit: i,
		}
		l.batch(stranger.Batch(s.w.victim().address, membershipActor,
			sealed(s.name(), 7, s.incarnation(wire.MembershipHello), wire.MembershipHello, h)))
		time.Sleep(100 * time.Millisecond)
	}
	if s.w.mode == plainMode {
		require.NotZero(s.t, s.incarnation(wire.MembershipHello),
			"it was answered, so this was an attack")
	}
	l.settle()
}

// relayed asks the victim to relay a message to a third party that counts connections.
func relayed(s *intruder) {
	third, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	var reached atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := third.Accept(); err == nil {
			reached.Store(true)
			_ = c.Close()
		}
	}()
	l := s.open(s.w.victim(), s.address)
	l.batch(stranger.Batch(third.Addr().String(), "door", wrapperspb.Bool(true)))
	l.batch(stranger.Batch(fmt.Sprint("localhost:", s.w.victim().address[len("127.0.0.1:"):]),
		"door", wrapperspb.Bool(true)))
	l.settle()
	time.Sleep(500 * time.Millisecond)
	_ = third.Close()
	<-done
	require.False(s.t, reached.Load(), "the message was passed on")
}

// floods consume memory, goroutines or time.
func floods() []attack {
	field := func(n protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, n, protowire.BytesType), b)
	}
	push := func(n int, m func() []byte) func(*intruder) {
		return func(s *intruder) {
			for range n {
				l := s.open(s.w.victim(), s.address)
				l.push(m())
				l.settle()
			}
		}
	}
	const much = 16 << 20
	return []attack{
		{"empty envelopes", true, push(4, func() []byte {
			return field(1, bytes.Repeat(field(3, nil), much/2))
		})},
		{"empty senders", false, push(4, func() []byte {
			return field(1, bytes.Repeat(field(4, nil), much/2))
		})},
		{"headers", false, push(4, func() []byte {
			return field(1, field(3, field(6, bytes.Repeat(field(1, nil), much/2))))
		})},
		{"groups in groups", false, push(4, func() []byte {
			return bytes.Repeat(protowire.AppendTag(nil, 7, protowire.StartGroupType), much/4)
		})},
		{"a message of tiny elements", true, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for range 4 {
				l.batch(stranger.Changed(stranger.Batch(s.w.victim().address, "door",
					&fieldmaskpb.FieldMask{}), func(b *remote.MessageBatch) {
					b.Envelopes[0].MessageData = bytes.Repeat(field(1, []byte("a")), much/4)
				}))
			}
			l.settle()
		}},
		{"a message beyond the largest", false, push(2, func() []byte {
			return make([]byte, 65<<20)
		})},
		{"forged senders", true, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for i := range 2000 {
				l.batch(stranger.Changed(stranger.Batch(s.w.victim().address, "nobody",
					wrapperspb.Bool(true)), func(b *remote.MessageBatch) {
					b.Senders = []*actor.PID{
						actor.NewPID(fmt.Sprintf("127.0.0.1:%d", 30_000+i), "x")}
					b.Envelopes[0].Sender = 1
				}))
			}
			l.settle()
		}},
		{"watches", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for i := range 100 {
				l.batch(s.watches(1000*i, 1000))
			}
			l.settle()
		}},
		{"watches on many streams", false, func(s *intruder) {
			for i := range 50 {
				l := s.open(s.w.victim(), s.address)
				l.batch(s.watches(4000*i, 4000))
				l.settle()
			}
		}},
		{"terminations everywhere", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for i := range 2000 {
				l.batch(stranger.Batch(s.w.victim().address, "door", &actor.Terminated{
					Who: actor.NewPID(fmt.Sprintf("127.0.0.1:%d", 30_000+i), "x"),
				}))
			}
			l.settle()
		}},
		{"messages for nobody", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for range 200 {
				full := stranger.Batch(s.w.victim().address, "nobody", wrapperspb.Bool(true))
				for range 199 {
					full.Envelopes = append(full.Envelopes, full.Envelopes[0])
				}
				l.batch(full)
			}
			l.settle()
		}},
	}
}

// memory are attacks that hold memory with calls that never end. The members are looked at while
// they are under way.
func memory() []attack {
	look := func(s *intruder) { require.NoError(s.t, s.w.asBefore()) }
	// dam is a connection on which no more than some bytes are sent.
	dam := func(bytes int64) grpc.DialOption {
		return grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
			if err != nil {
				return nil, err
			}
			d := &dammed{Conn: c, closed: make(chan struct{})}
			d.left.Store(bytes)
			return d, nil
		})
	}
	const each, streams = 30 << 20, 16
	unfinished := func(method string, introduced bool) func(*intruder) {
		return func(s *intruder) {
			cc := s.connect(s.w.victim(), dam(each*streams*9/10))
			for range streams {
				stream, err := cc.NewStream(s.t.Context(), &grpc.StreamDesc{ServerStreams: true,
					ClientStreams: true}, method)
				if err != nil {
					return
				}
				if introduced {
					_ = stream.SendMsg(stranger.Introduce(s.address))
				}
				go func() { _ = stream.SendMsg(make([]byte, each)) }()
			}
			for range 10 {
				time.Sleep(300 * time.Millisecond)
				look(s)
			}
		}
	}
	return []attack{
		{"unfinished calls", true, unfinished("/remote.Remoting/ListProcesses", false)},
		{"unfinished first messages", false, unfinished("/remote.Remoting/Receive", false)},
		{"unfinished messages", false, unfinished("/remote.Remoting/Receive", true)},
		{"compressed headers", true, func(s *intruder) {
			for range 4 {
				s.headers(250_000, 16)
			}
			for range 5 {
				look(s)
			}
		}},
	}
}

// dammed is a connection whose writes block after some bytes.
type dammed struct {
	net.Conn
	left   atomic.Int64
	once   sync.Once
	closed chan struct{}
}

// Write implements net.Conn.
func (d *dammed) Write(b []byte) (int, error) {
	if d.left.Add(-int64(len(b))) < 0 {
		<-d.closed
		return 0, net.ErrClosed
	}
	return d.Conn.Write(b)
}

// Close implements net.Conn.
func (d *dammed) Close() error {
	d.once.Do(func() { close(d.closed) })
	return d.Conn.Close()
}

// headers opens streams on one connection, each with n header fields of one byte.
func (s *intruder) headers(n, streams int) {
	raw, err := net.Dial("tcp", s.w.victim().address)
	require.NoError(s.t, err)
	c := raw
	if s.w.mode == tlsMode {
		c = tls.Client(raw, &tls.Config{InsecureSkipVerify: true,
			NextProtos: []string{"h2"}})
	}
	s.t.Cleanup(func() { _ = c.Close() })
	go func() { _, _ = io.Copy(io.Discard, c) }()
	_, _ = io.WriteString(c, http2.ClientPreface)
	f := http2.NewFramer(c, nil)
	_ = f.WriteSettings()
	var head bytes.Buffer
	enc := hpack.NewEncoder(&head)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path",
		"/remote.Remoting/Receive"}, {":authority", "x"}, {"content-type", "application/grpc"},
		{"te", "trailers"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	all := append(head.Bytes(), bytes.Repeat([]byte{0x80 | 16}, n)...) // accept-encoding
	for i := range streams {
		id := uint32(2*i + 1)
		const frame = 16 << 10
		for at := 0; at < len(all); at += frame {
			part, last := all[at:min(at+frame, len(all))], at+frame >= len(all)
			if at == 0 {
				err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part,
					EndHeaders: last})
			} else {
				err = f.WriteContinuation(id, last, part)
			}
			if err != nil {
				return // the connection was closed
			}
		}
	}
}

// connections are attacks with streams and sockets.
func connections() []attack {
	return []attack{
		{"streams that say nothing", true, func(s *intruder) {
			for range 20 {
				cc := s.connect(s.w.victim())
				for range 10 {
					s.bare(cc)
				}
			}
		}},
		{"streams of one peer", false, func(s *intruder) {
			for range 2000 {
				s.open(s.w.victim(), s.address)
			}
		}},
		{"sockets that say nothing", false, func(s *intruder) { s.sockets(10_000, nil) }},
		{"sockets with garbage", true, func(s *intruder) {
			garbage := make([]byte, 4096)
			_, _ = rand.Read(garbage)
			s.sockets(100, garbage)
		}},
		{"HTTP/1", false, func(s *intruder) {
			s.sockets(100, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
		}},
		{"half a preface", false, func(s *intruder) {
			s.sockets(300, []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n"))
		}},
		{"introduced twice", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for range 1000 {
				l.push(stranger.Introduce(s.address))
			}
			l.settle()
		}},
		{"in the name of everybody", true, func(s *intruder) {
			for _, p := range s.w.members {
				for range 20 {
					s.open(s.w.victim(), p.address).settle()
				}
			}
			for i := range 50 { // the called address does not answer
				s.open(s.w.victim(), fmt.Sprintf("127.0.0.1:%d", 1+i))
			}
		}},
		{"questions for streams", false, func(s *intruder) {
			cc := s.connect(s.w.victim())
			for i := range 300 {
				stream, err := cc.NewStream(s.t.Context(), &grpc.StreamDesc{ServerStreams: true,
					ClientStreams: true}, "/concord.v1.Guard/Vouch")
				if err != nil {
					return
				}
				question := append(make([]byte, 16), s.address...)
				_ = stream.SendMsg(question[:min(len(question), i)])
				var answer []byte
				if stream.RecvMsg(&answer) == nil {
					require.Equal(s.t, []byte{0}, answer, "it vouches for no stream but its own")
				}
			}
		}},
		{"a peer that does not read", false, func(s *intruder) {
			l := s.open(s.w.victim(), s.address)
			for range 3000 { // each is answered to a listener that never reads
				l.batch(stranger.Changed(stranger.Batch(s.w.victim().address, "nobody",
					wrapperspb.Bool(true)), func(b *remote.MessageBatch) {
					b.Senders = []*actor.PID{actor.NewPID(s.address, "x")}
					b.Envelopes[0].Sender = 1
				}))
			}
		}},
		{"certificates of others", true, certificates},
		{"a captured run of another cluster", false, replayed},
	}
}

// sockets opens n connections concurrently and sends data on each.
func (s *intruder) sockets(n int, data []byte) {
	var wg sync.WaitGroup
	room := make(chan struct{}, 64)
	for range n {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			c, err := net.DialTimeout("tcp", s.w.victim().address, time.Second)
			if err != nil {
				return
			}
			s.t.Cleanup(func() { _ = c.Close() })
			_, _ = c.Write(data)
		})
	}
	wg.Wait()
}

// certificates is the negative matrix of TLS: no certificate makes the stranger a peer. Members
// without TLS close the connections.
func certificates(s *intruder) {
	wrong, err := pki.NewAuthority("wrong")
	require.NoError(s.t, err)
	self, err := pki.NewAuthority("self")
	require.NoError(s.t, err)
	right := s.w.ca
	if right == nil {
		right = wrong
	}
	hosts := []string{"127.0.0.1"}
	past := time.Now().Add(-time.Minute)
	for name, c := range map[string]struct {
		by *pki.Authority
		m  pki.Member
	}{
		"wrong authority": {wrong, pki.Member{Hosts: hosts}},
		"expired": {
			right, pki.Member{Hosts: hosts, From: past.Add(-time.Hour), To: past}},
		"another's address": {right, pki.Member{Hosts: hosts, Addresses: []string{"127.0.0.1:1"}}},
		"another's name":    {right, pki.Member{Hosts: []string{"localhost"}}},
		"a server's": {right, pki.Member{Hosts: hosts, Usages: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth}}},
		"nobody's":    {right, pki.Member{}},
		"self-signed": {self, pki.Member{Hosts: hosts}},
	} {
		cert, key, err := c.by.Issue(c.m)
		require.NoError(s.t, err)
		if c.by == self {
			cert = append(cert, self.PEM()...)
		}
		pair, err := tls.X509KeyPair(cert, key)
		require.NoError(s.t, err)
		cfg := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &pair, nil
		}
		other, _ := s.w.bystander()
		l := s.bare(s.connect(s.w.victim(), grpc.WithTransportCredentials(credentials.NewTLS(cfg))))
		l.push(stranger.Introduce(other.address))
		if l.ClientStream != nil {
			var answer []byte
			require.Error(s.t, l.RecvMsg(&answer), name)
		}
	}
}

// watches returns a batch with watches of an actor of the victim by n actors of the intruder.
func (s *intruder) watches(first, n int) *remote.MessageBatch {
	full := stranger.Batch(s.w.victim().address, "door", &actor.Watch{})
	full.Envelopes = nil
	for i := range n {
		data, _ := proto.Marshal(
			&actor.Watch{Watcher: actor.NewPID(s.address, fmt.Sprint(first+i))})
		full.Envelopes = append(full.Envelopes, &remote.MessageEnvelope{MessageData: data})
	}
	return full
}
