package hostile_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
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
	forge("a member declines", false, "concord-singletons",
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
// it has learned, and makes every claim that would make a member step down.
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
