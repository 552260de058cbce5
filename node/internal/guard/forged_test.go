package guard

import (
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/internal/stranger"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// lane sends batches to a member and reports whether they arrive.
type lane struct {
	to *end
	s  *stream
	n  int
}

// delivered sends b followed by a marker message, and reports whether anything of b arrived.
func (l *lane) delivered(b *remote.MessageBatch) bool {
	before := len(l.to.seen())
	l.s.send(b)
	l.n++
	mark := fmt.Sprint("mark ", l.n)
	l.s.send(text(l.to, mark))
	l.to.hears(mark)
	return len(l.to.seen()) > before+1
}

// envelope returns a message of this module.
func envelope(member string, m wire.Manifest, payload proto.Message) proto.Message {
	data, _ := proto.Marshal(payload)
	return wire.Seal(wire.Header{Cluster: "shop", Member: member, From: 1, To: 1}, m, data)
}

// receiverOf returns the actor to which members send a message.
func receiverOf(m proto.Message) string {
	e, ok := m.(*pb.Envelope)
	if !ok {
		return "alive"
	}
	switch n := wire.Manifest(e.Manifest).Plain(); {
	case n < 10:
		return "concord-membership"
	case n < 30:
		return "concord-replicator-x"
	case n < 50:
		return "concord-singleton-x"
	case n < 70:
		return "concord-sharding-x"
	}
	return "concord.arbiter"
}

// TestForged_NobodySpeaksForAnotherMember uses a peer that is a member, so its own messages are
// accepted.
func TestForged_NobodySpeaksForAnotherMember(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	const other = "10.0.0.9:7"
	b.sees(map[string]string{"a": a.address, "b": b.address, "c": other})
	l := &lane{to: b, s: a.mustDial(b)}
	to := func(m proto.Message) *remote.MessageBatch {
		return stranger.Batch(b.address, receiverOf(m), m)
	}
	pid := actor.NewPID

	for name, m := range map[string]proto.Message{
		"termination of our own actor":   &actor.Terminated{Who: pid(b.address, "manager/1-1")},
		"termination at another member":  &actor.Terminated{Who: pid(other, "x")},
		"termination of a local actor":   &actor.Terminated{Who: pid("nonhost", "manager/1-1")},
		"termination without an address": &actor.Terminated{Who: pid("", "manager/1-1")},
		"watch for ourselves":            &actor.Watch{Watcher: pid(b.address, "x")},
		"watch for another":              &actor.Watch{Watcher: pid(other, "x")},
		"unwatch for another":            &actor.Unwatch{Watcher: pid(other, "x")},
		"hello of another": envelope("c", wire.MembershipHello,
			&pb.Hello{Address: other, Stamp: 1}),
		"hello of another at our address": envelope("c", wire.MembershipHello,
			&pb.Hello{Address: a.address}),
		"hello with another address": envelope("a", wire.MembershipHello,
			&pb.Hello{Address: other}),
		"hello of nobody, at another": envelope("z", wire.MembershipHello,
			&pb.Hello{Address: other}),
		"hello of this member": envelope("b", wire.MembershipHello,
			&pb.Hello{Address: b.address}),
		"addresses named by another": envelope("c", wire.MembershipOthers,
			&pb.Others{Addresses: []string{"x:1"}}),
		"beat of another": envelope("c", wire.ReplicatorBeat, &pb.Beat{}),
		"leaving of another": envelope("c", wire.SingletonLeaving,
			&pb.SingletonLeaving{}),
		"host of another": envelope("c", wire.SingletonHost,
			&pb.SingletonHost{Token: 7}),
		"announcement of another": envelope("c", wire.SingletonNews,
			&pb.SingletonNews{Version: 7}),
		"question of nobody": envelope("z", wire.SingletonIdentify,
			&pb.SingletonIdentify{}),
		"verdict of another": envelope("c", wire.ArbiterVerdict, &pb.SingletonFree{}),
		"stop":               &actor.Stop{},
		"poison":             &actor.PoisonPill{},
		"empty watch":        &actor.Watch{},
		"empty termination":  &actor.Terminated{},
	} {
		require.False(t, l.delivered(to(m)), name)
	}
	require.False(t, l.delivered(stranger.Batch(b.address, "eventstream",
		&cluster.ClusterTopology{})), "an event of Proto.Actor")

	for name, m := range map[string]proto.Message{
		"termination at the peer": &actor.Terminated{Who: pid(a.address, "x")},
		"watch":                   &actor.Watch{Watcher: pid(a.address, "x")},
		"unwatch":                 &actor.Unwatch{Watcher: pid(a.address, "x")},
		"hello": envelope("a", wire.MembershipHello,
			&pb.Hello{Address: a.address}),
		"hello of a new member": envelope("a2", wire.MembershipHello,
			&pb.Hello{Address: a.address}),
		"beat":    envelope("a", wire.ReplicatorBeat, &pb.Beat{}),
		"leaving": envelope("a", wire.SingletonLeaving, &pb.SingletonLeaving{}),
		"question passed on": envelope("c", wire.SingletonIdentify,
			&pb.SingletonIdentify{Hops: 1}),
		"of a user": wrapperspb.Bool(true),
	} {
		require.True(t, l.delivered(to(m)), name)
	}
	require.False(t, l.delivered(stranger.Batch(b.address, "concord-membership",
		envelope("a", wire.ReplicatorBeat, &pb.Beat{}))), "a beat for another actor")
	require.False(t, l.delivered(stranger.Batch(b.address, "alive",
		envelope("a", wire.ReplicatorBeat, &pb.Beat{}))), "a beat for an actor of a user")
	answer := wrapperspb.Bool(true)
	require.True(t, l.delivered(stranger.Batch(b.address, "$ask-X", answer)),
		"an answer: the question may have been forwarded")
	require.True(t, l.delivered(stranger.Batch(b.address, "eventstream", wrapperspb.Bool(true))),
		"an event of a user")
}

// TestForged_ActorsOfProtoActorBelieveNoStranger covers messages with which anyone could ban
// members, stop virtual actors, or make Proto.Actor's own actors panic.
func TestForged_ActorsOfProtoActorBelieveNoStranger(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	const other = "10.0.0.9:7"
	pid := actor.NewPID
	cart := &cluster.ClusterIdentity{Identity: "1", Kind: "cart"}
	activations := []string{"partition-activator"}
	everywhere := []string{"activator", "$pubsub-delivery", "eventstream", "gossip",
		"partition-activator", "EndpointSupervisor", "EndpointSupervisor/$1", "deadletter",
		"guardian$1"}
	state, marks := &cluster.GossipState{}, 0
	for _, c := range []struct {
		name   string
		m      proto.Message
		to     []string
		member bool // it arrives from a member
	}{
		{"activation", &cluster.ActivationRequest{ClusterIdentity: cart}, activations, true},
		{"activation of nothing", &cluster.ActivationRequest{}, activations, false},
		{"activation of an unknown kind", &cluster.ActivationRequest{
			ClusterIdentity: &cluster.ClusterIdentity{Kind: "x"}}, activations, false},
		{"topology", &cluster.ClusterTopology{}, everywhere, false},
		{"termination at the peer", &actor.Terminated{Who: pid(a.address, "x")}, everywhere, false},
		{"watch", &actor.Watch{Watcher: pid(a.address, "x")}, everywhere, false},
		{"envelope", envelope("a", wire.ReplicatorBeat, &pb.Beat{}), everywhere, false},
		{"text", wrapperspb.String("x"), []string{"activator", "$pubsub-delivery", "gossip",
			"partition-activator", "EndpointSupervisor/$1", "deadletter"}, false},
		{"text", wrapperspb.Bool(true), []string{"eventstream"}, true},
		{"gossip", &cluster.GossipRequest{State: state}, []string{"gossip"}, true},
		{"gossip without a state", &cluster.GossipRequest{}, []string{"gossip"}, false},
		{"spawning", &remote.ActorPidRequest{}, []string{"activator"}, true},
		{"delivery", &cluster.DeliverBatchRequestTransport{}, []string{"$pubsub-delivery"}, true},
		{"batch of messages", &cluster.PubSubBatchTransport{}, []string{"x"}, true},
		{"end of an activation", &cluster.ActivationTerminated{ClusterIdentity: cart,
			Pid: pid(a.address, "x")}, []string{"eventstream"}, true},
		{"end of an activation elsewhere", &cluster.ActivationTerminated{ClusterIdentity: cart,
			Pid: pid(other, "x")}, []string{"eventstream"}, false},
	} {
		for _, id := range c.to {
			for _, listed := range []bool{false, true} {
				members := map[string]string{"b": b.address}
				want := false
				if listed {
					members["a"], want = a.address, c.member
				}
				b.sees(members)
				l := &lane{to: b, s: a.mustDial(b), n: marks}
				require.Equal(t, want, l.delivered(stranger.Batch(b.address, id, c.m)),
					"%s to %s, of a member: %v", c.name, id, listed)
				marks = l.n
			}
		}
	}
}

// A stranger may introduce itself, and relays nothing. Members that start are strangers for a
// moment, so their questions are counted apart from forgeries.
func TestForged_AStrangerPassesNothingOn(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	b.sees(map[string]string{"b": b.address, "c": "10.0.0.9:7"})
	l := &lane{to: b, s: a.mustDial(b)}
	send := func(m proto.Message) bool {
		return l.delivered(stranger.Batch(b.address, receiverOf(m), m))
	}
	require.False(t, send(envelope("c", wire.SingletonIdentify,
		&pb.SingletonIdentify{Round: 1 << 60})))
	require.False(t, send(envelope("a", wire.ReplicatorBeat.OfDurable(), &pb.Beat{})))
	require.False(t, l.delivered(stranger.Batch(b.address, "$ask-X", wrapperspb.Bool(true))),
		"an answer")
	require.EqualValues(t, 3, b.process.Refusals()["unlisted"])
	require.True(t, send(envelope("a", wire.MembershipHello, &pb.Hello{Address: a.address})))
	require.False(t, send(envelope("c", wire.MembershipHello, &pb.Hello{Address: a.address})))
	require.EqualValues(t, 1, b.process.Refusals()["forged"])
}

// TestForged_TheLastFieldCounts checks that a repeated field is read as the decoder reads it.
func TestForged_TheLastFieldCounts(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	b.sees(map[string]string{"a": a.address, "c": "10.0.0.9:7"})
	l := &lane{to: b, s: a.mustDial(b)}
	mine, _ := proto.Marshal(envelope("a", wire.SingletonLeaving, &pb.SingletonLeaving{}))
	forged, _ := proto.Marshal(envelope("c", wire.SingletonLeaving, &pb.SingletonLeaving{}))
	for name, data := range map[string][]byte{"mine first": append(mine, forged...),
		"cut": forged[:len(forged)-1]} {
		require.False(t, l.delivered(
			stranger.Changed(stranger.Batch(b.address, "concord-singleton-x", &pb.Envelope{}),
				func(b *remote.MessageBatch) {
					b.Envelopes[0].MessageData = data
				})), name)
	}
}

func TestRelay_NothingIsPassedOn(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	l := &lane{to: b, s: a.mustDial(b)}
	relayed := stranger.Batch("10.0.0.9:7", "x", wrapperspb.Bool(true))
	if _, ok := any(relayed.Targets).([]string); ok {
		return // targets have no address in this version of Proto.Actor
	}
	require.False(t, l.delivered(relayed))
	require.False(t, l.delivered(stranger.Batch("", "x", wrapperspb.Bool(true))))
	require.False(t, l.delivered(stranger.Batch("localhost:7", "x", wrapperspb.Bool(true))))
	require.True(t, l.delivered(stranger.Batch("nonhost", "x", wrapperspb.Bool(true))))
}

// TestPublic_OthersAreNotReached checks what Config.Public promises: processes that are not members
// reach the actors that it names and their children, and members reach every actor.
func TestPublic_OthersAreNotReached(t *testing.T) {
	ids := map[string]bool{
		"door": true, "door/1": true, "doorman": false, "safe": false, "door2/door": false,
		"$1": false, "future$7": false, "concord-membership": false, "concord-singleton-x": false,
		"concord-singleton-proxy-x": false, "concord-region-x": false,
		"concord-replicator-x": false, "partition-activator/x$door": false,
	}
	for _, public := range [][]string{{"door"}, {}} {
		for _, listed := range []bool{false, true} {
			a, b := listen(t, Config{}), listen(t, Config{Public: append(public, "mark")})
			if listed {
				b.sees(map[string]string{"a": a.address})
			} else {
				b.sees(nil)
			}
			s := a.mustDial(b)
			for id, named := range ids {
				before := len(b.seen())
				s.send(stranger.Batch(b.address, id, wrapperspb.String(id)))
				s.send(stranger.Batch(b.address, "mark", wrapperspb.String("behind "+id)))
				b.hears("behind " + id)
				require.Equal(t, listed || named && len(public) > 0, len(b.seen()) > before+1,
					"%s, with Public %v, of a member: %v", id, public, listed)
			}
		}
	}
}

// TestSettle_AMessageWaitsForItsSenderToBeListed covers a member that has just joined.
func TestSettle_AMessageWaitsForItsSenderToBeListed(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{Settle: patience})
	b.sees(nil)
	s := a.mustDial(b)
	s.send(stranger.Batch(b.address, "concord-membership",
		envelope("a", wire.MembershipHello, &pb.Hello{Address: a.address})))
	b.hears("concord.v1.Envelope")
	s.send(stranger.Batch(b.address, "safe", wrapperspb.String("early")))
	s.send(stranger.Batch(b.address, "x", wrapperspb.String("behind it")))
	b.sees(map[string]string{"a": a.address})
	b.hears("behind it")
	require.Equal(t, []string{"concord.v1.Envelope", "early", "behind it"}, b.seen())
}

// TestSenders_AreBounded bounds sender addresses: each address that is answered costs Proto.Actor
// goroutines for minutes.
func TestSenders_AreBounded(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	b.sees(map[string]string{"a": a.address, "c": "10.0.0.9:7"})
	l := &lane{to: b, s: a.mustDial(b)}
	from := func(address string) *remote.MessageBatch {
		return stranger.Changed(stranger.Batch(b.address, "x", wrapperspb.Bool(true)),
			func(b *remote.MessageBatch) {
				b.Senders = []*actor.PID{actor.NewPID(address, "y")}
				b.Envelopes[0].Sender = 1
			})
	}
	passed := 0
	for i := range 200 {
		if l.delivered(from(fmt.Sprintf("10.1.0.1:%d", i+1))) {
			passed++
		}
	}
	require.Equal(t, maxForeign, passed)
	require.True(t, l.delivered(from(a.address)), "the peer")
	require.True(t, l.delivered(from("10.0.0.9:7")), "a member, whose message the peer passes on")
	require.True(t, l.delivered(from(b.address)), "this member")
	require.False(t, l.delivered(from("nowhere")), "no address")
	require.False(t, l.delivered(stranger.Changed(from("x:1"), func(b *remote.MessageBatch) {
		b.Senders[0] = &actor.PID{}
	})), "no address")
}

func TestWatches_AreBounded(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{})
	b.sees(map[string]string{"a": a.address})
	c := newChecker(b.guard, a.address, b.address)
	w := func(n int) *actor.PID { return actor.NewPID(a.address, fmt.Sprint(n)) }
	for i := range maxWatches {
		require.Nil(t, c.watch(w(i), "alive"))
	}
	require.Nil(t, c.watch(w(0), "alive"), "one that is there")
	require.Equal(t, tooMuch, c.watch(w(-1), "alive").reason)
	for range maxWatches {
		require.NotNil(t, c.watch(w(-1), "alive"), "refused without looking at all of them")
	}
	require.Nil(t, c.message(kindOf("actor.Unwatch"), mustMarshal(&actor.Unwatch{Watcher: w(0)}),
		&target{id: "alive"}))
	require.Nil(t, c.watch(w(-1), "alive"), "after an unwatch")

	// Watches of stopped actors do not count.
	c = newChecker(b.guard, a.address, b.address)
	for i := range 3 * maxWatches {
		require.Nil(t, c.watch(w(i), "gone"))
	}
	require.LessOrEqual(t, len(c.watches.all), maxWatches)
}

// TestStrangers_AreBoundedTogether checks that a stranger gains nothing by more streams and
// addresses.
func TestStrangers_AreBoundedTogether(t *testing.T) {
	b := listen(t, Config{})
	b.sees(nil)
	watching := 0
	for i := range maxWatches + 500 {
		address := fmt.Sprintf("10.1.0.%d:7", i%200)
		c := newChecker(b.guard, address, b.address)
		if c.watch(actor.NewPID(address, fmt.Sprint(i)), "alive") == nil {
			watching++
		}
	}
	require.Equal(t, maxWatches, watching)
	s, now, named := &b.guard.strangers, time.Now(), 0
	for i := range 200 {
		if s.names(fmt.Sprintf("10.2.0.1:%d", i+1), now) {
			named++
		}
	}
	require.Equal(t, maxForeign, named)
	require.True(t, s.names("10.2.0.1:1", now), "one that was named")
	require.True(t, s.names("10.2.0.1:999", now.Add(foreignFor)), "a minute later")
	c := newChecker(b.guard, "10.1.0.0:7", b.address)
	require.Nil(t, c.message(kindOf("actor.Unwatch"), mustMarshal(&actor.Unwatch{
		Watcher: actor.NewPID("10.1.0.0:7", "0")}), &target{id: "alive"}))
	require.Nil(t, c.watch(actor.NewPID("10.1.0.0:7", "new"), "alive"), "after an unwatch")
}

func mustMarshal(m proto.Message) []byte {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

// TestStream_OnlyBatchesFollow rejects other messages, which Proto.Actor would log or answer.
func TestStream_OnlyBatchesFollow(t *testing.T) {
	b := listen(t, Config{})
	for name, m := range map[string]*remote.RemoteMessage{
		"empty":            {},
		"introduced twice": stranger.Introduce("10.0.0.9:7"),
		"disconnect":       {MessageType: &remote.RemoteMessage_DisconnectRequest{}},
	} {
		s := listen(t, Config{}).mustDial(b)
		require.NoError(t, s.SendMsg(m))
		require.Equal(t, codes.InvalidArgument, status.Code(s.ended()), name)
	}
}
