package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Manifest is the type of a payload. Numbers are never reused; a change of a payload that old nodes
// cannot read gets a new number.
type Manifest uint32

// durable marks a manifest of the replicator as one for durable keys, which have their own vectors
// and events. A node that does not know it drops the payload.
const durable Manifest = 1 << 16

// OfDurable returns m as a manifest for durable keys.
func (m Manifest) OfDurable() Manifest { return m | durable }

// Durable reports whether m is a manifest for durable keys.
func (m Manifest) Durable() bool { return m&durable != 0 }

// Plain returns m without the mark for durable keys.
func (m Manifest) Plain() Manifest { return m &^ durable }

// receivers are the prefixes of the actors that take the manifests up to a number, and no others.
var receivers = []struct {
	last Manifest
	name []string
}{
	{9, []string{"concord-membership"}},
	{29, []string{"concord-replicator-"}},
	{39, nil},
	{49, []string{"concord-singleton-", "concord-singletons"}},
	{69, []string{"concord-sharding-", "concord-inlet-"}},
	{74, []string{"concord.arbiter"}},
}

// For reports whether an actor takes messages with this manifest. Only those of replicators have
// a form for durable keys.
func (m Manifest) For(actor string) bool {
	for _, r := range receivers {
		if m.Plain() <= r.last {
			return (!m.Durable() || r.last == 29) && slices.ContainsFunc(r.name,
				func(p string) bool { return strings.HasPrefix(actor, p) })
		}
	}
	return false
}

// Membership, 1 to 9.
const (
	// MembershipHello introduces a member: concord.v1.Hello.
	MembershipHello Manifest = 1
	// MembershipOthers contains addresses that the sender lists: concord.v1.Others.
	MembershipOthers Manifest = 2
)

// Replicator, 10 to 29.
const (
	// ReplicatorBeat is the heartbeat with the sender's vector.
	ReplicatorBeat Manifest = 10
	// ReplicatorRequest requests events that the sender lacks.
	ReplicatorRequest Manifest = 12
	// ReplicatorAck reports how far the sender has applied events.
	ReplicatorAck Manifest = 13
	// ReplicatorProbe requests the vector, for a quorum read.
	ReplicatorProbe Manifest = 14
	// ReplicatorProbeReply answers a probe.
	ReplicatorProbeReply Manifest = 15
	// ReplicatorPart is one part of the answer to a request.
	ReplicatorPart Manifest = 16
	// ReplicatorMore acknowledges the parts received so far to the sender of an answer.
	ReplicatorMore Manifest = 17
	// ReplicatorCompare requests cells of a sketch, to find the keys that differ.
	ReplicatorCompare Manifest = 18
	// ReplicatorCells carries such cells.
	ReplicatorCells Manifest = 19
	// ReplicatorBaseRequest requests a vector that another message identified by its digest.
	ReplicatorBaseRequest Manifest = 20
	// ReplicatorBase carries a piece of such a vector.
	ReplicatorBase Manifest = 21
	// ReplicatorMembers carries the members known to the sender.
	ReplicatorMembers Manifest = 22
	// ReplicatorPush carries events of the sender. Earlier formats had the numbers 11 and 23.
	ReplicatorPush Manifest = 24
	// ReplicatorEnd is above all manifests of the replicator.
	ReplicatorEnd Manifest = 30
)

// Singleton, 40 to 49.
const (
	// SingletonIdentify asks which member hosts the instance.
	SingletonIdentify Manifest = 40
	// SingletonHost answers that the sender hosts the instance.
	SingletonHost Manifest = 41
	// SingletonPaused reports that the sender no longer hosts the instance.
	SingletonPaused Manifest = 42
	// SingletonFree reports that the lease is free.
	SingletonFree Manifest = 43
	// SingletonLeaving reports that the sender will no longer host.
	SingletonLeaving Manifest = 44
	// SingletonNews carries the announcements of a member about its singletons.
	SingletonNews Manifest = 45
	// SingletonState carries the state that an instance leaves to the next one.
	SingletonState Manifest = 46
	// SingletonStateTaken acknowledges that state.
	SingletonStateTaken Manifest = 47
)

// Arbiter, 70 to 74.
const (
	// ArbiterVerdict reports which side of a partition hosts, as far as the sender knows.
	ArbiterVerdict Manifest = 70
)

// Sharding, 50 to 69.
const (
	// ShardingHello introduces a region.
	ShardingHello Manifest = 50
	// ShardingTable carries the coordinator's table.
	ShardingTable Manifest = 51
	// ShardingReport answers a table.
	ShardingReport Manifest = 52
	// ShardingAskFree asks whether a shard is free.
	ShardingAskFree Manifest = 53
	// ShardingFree answers that the shard is free.
	ShardingFree Manifest = 54
	// ShardingActive announces a tenure of a shard.
	ShardingActive Manifest = 55
	// ShardingWhere asks for the tenure of a shard.
	ShardingWhere Manifest = 56
	// ShardingPause requests that nothing more is sent under a tenure.
	ShardingPause Manifest = 57
	// ShardingFlush reports how many messages were sent under a tenure.
	ShardingFlush Manifest = 58
	// ShardingInactive reports that a tenure was lost.
	ShardingInactive Manifest = 59
	// ShardingNotHere answers a message sent under an ended tenure.
	ShardingNotHere Manifest = 60
	// ShardingData carries messages to entities.
	ShardingData Manifest = 61
	// ShardingAskStats requests the statistics of a member.
	ShardingAskStats Manifest = 62
	// ShardingStats answers with the statistics.
	ShardingStats Manifest = 63
	// ShardingSent asks a member what it has taken of the messages to its entities.
	ShardingSent Manifest = 64
	// ShardingTaken answers with it.
	ShardingTaken Manifest = 65
)

var names = [...]string{
	MembershipHello:       "membership.hello",
	MembershipOthers:      "membership.others",
	ReplicatorBeat:        "replicator.beat",
	ReplicatorPush:        "replicator.push",
	ReplicatorRequest:     "replicator.request",
	ReplicatorAck:         "replicator.ack",
	ReplicatorProbe:       "replicator.probe",
	ReplicatorProbeReply:  "replicator.probe-reply",
	ReplicatorPart:        "replicator.part",
	ReplicatorMore:        "replicator.more",
	ReplicatorCompare:     "replicator.compare",
	ReplicatorCells:       "replicator.cells",
	ReplicatorBaseRequest: "replicator.base-request",
	ReplicatorBase:        "replicator.base",
	ReplicatorMembers:     "replicator.members",
	SingletonIdentify:     "singleton.identify",
	SingletonHost:         "singleton.host",
	SingletonPaused:       "singleton.paused",
	SingletonFree:         "singleton.free",
	SingletonLeaving:      "singleton.leaving",
	SingletonNews:         "singleton.news",
	SingletonState:        "singleton.state",
	SingletonStateTaken:   "singleton.state-taken",
	ShardingHello:         "sharding.hello",
	ShardingTable:         "sharding.table",
	ShardingReport:        "sharding.report",
	ShardingAskFree:       "sharding.ask-free",
	ShardingFree:          "sharding.free",
	ShardingActive:        "sharding.active",
	ShardingWhere:         "sharding.where",
	ShardingPause:         "sharding.pause",
	ShardingFlush:         "sharding.flush",
	ShardingInactive:      "sharding.inactive",
	ShardingNotHere:       "sharding.not-here",
	ShardingData:          "sharding.data",
	ShardingAskStats:      "sharding.ask-stats",
	ShardingStats:         "sharding.stats",
	ShardingSent:          "sharding.sent",
	ShardingTaken:         "sharding.taken",
	ArbiterVerdict:        "arbiter.verdict",
}

// String returns the name for logs and metrics. The name of an unknown manifest contains its
// number.
func (m Manifest) String() string {
	if p := m.Plain(); p < Manifest(len(names)) && names[p] != "" {
		if m.Durable() {
			return names[p] + ".durable"
		}
		return names[p]
	}
	return fmt.Sprintf("manifest(%d)", uint32(m))
}
