package wire

import "fmt"

// Manifest says what a payload is. Numbers are never used again for anything else; a change of a
// payload that old nodes cannot read takes a new number.
type Manifest uint32

// durable marks a manifest of the replicator as one about durable keys, which have vectors and events of their own. A node
// that does not know it drops the payload.
const durable Manifest = 1 << 16

// OfDurable returns m as one about durable keys.
func (m Manifest) OfDurable() Manifest { return m | durable }

// Durable reports whether m is about durable keys.
func (m Manifest) Durable() bool { return m&durable != 0 }

// Plain returns m without saying which keys it is about.
func (m Manifest) Plain() Manifest { return m &^ durable }

// Membership, 1 to 9.
const (
	// MembershipHello introduces a member: concord.v1.Hello.
	MembershipHello Manifest = 1
	// MembershipOthers names addresses that the sender lists: concord.v1.Others.
	MembershipOthers Manifest = 2
)

// Replicator, 10 to 29.
const (
	// ReplicatorBeat is the heartbeat with the sender's vector.
	ReplicatorBeat Manifest = 10
	// ReplicatorPush carries own events of the sender.
	ReplicatorPush Manifest = 11
	// ReplicatorRequest asks for what the sender lacks.
	ReplicatorRequest Manifest = 12
	// ReplicatorAck says how far the sender has applied.
	ReplicatorAck Manifest = 13
	// ReplicatorProbe asks for the vector, for a quorum read.
	ReplicatorProbe Manifest = 14
	// ReplicatorProbeReply answers a probe.
	ReplicatorProbeReply Manifest = 15
	// ReplicatorPart is one part of the answer to a request.
	ReplicatorPart Manifest = 16
	// ReplicatorMore tells the sender of an answer that its parts so far have arrived.
	ReplicatorMore Manifest = 17
	// ReplicatorCompare asks for cells of a sketch, to find out which keys differ.
	ReplicatorCompare Manifest = 18
	// ReplicatorCells are such cells.
	ReplicatorCells Manifest = 19
	// ReplicatorBaseRequest asks for a vector that another message named by its digest.
	ReplicatorBaseRequest Manifest = 20
	// ReplicatorBase is a piece of such a vector.
	ReplicatorBase Manifest = 21
	// ReplicatorMembers carries the members that the sender remembers.
	ReplicatorMembers Manifest = 22
	// ReplicatorRetract tells of events that a restored replica has done again under another id.
	ReplicatorRetract Manifest = 23
)

// Singleton, 40 to 49.
const (
	// SingletonIdentify asks where the instance is.
	SingletonIdentify Manifest = 40
	// SingletonHost answers that it is at the sender.
	SingletonHost Manifest = 41
	// SingletonPaused says that it is not at the sender any more.
	SingletonPaused Manifest = 42
	// SingletonFree says that the lease is free.
	SingletonFree Manifest = 43
	// SingletonLeaving says that the sender will not host any more.
	SingletonLeaving Manifest = 44
	// SingletonAbstain says that the sender does not host for now.
	SingletonAbstain Manifest = 45
	// SingletonState carries what an instance leaves to the next one.
	SingletonState Manifest = 46
	// SingletonStateTaken says that it has arrived.
	SingletonStateTaken Manifest = 47
)

// Arbiter, 70 to 74.
const (
	// ArbiterVerdict tells which side of a partition hosts, as far as the sender knows.
	ArbiterVerdict Manifest = 70
)

// Sharding, 50 to 69.
const (
	// ShardingHello introduces a region.
	ShardingHello Manifest = 50
	// ShardingTable is the word of the coordinator.
	ShardingTable Manifest = 51
	// ShardingReport answers it.
	ShardingReport Manifest = 52
	// ShardingAskFree asks whether a shard is free.
	ShardingAskFree Manifest = 53
	// ShardingFree answers that it is.
	ShardingFree Manifest = 54
	// ShardingActive announces a tenure of a shard.
	ShardingActive Manifest = 55
	// ShardingWhere asks for it.
	ShardingWhere Manifest = 56
	// ShardingPause asks to send nothing more under a tenure.
	ShardingPause Manifest = 57
	// ShardingFlush answers how many messages were sent under it.
	ShardingFlush Manifest = 58
	// ShardingInactive says that a tenure was lost.
	ShardingInactive Manifest = 59
	// ShardingNotHere answers a message under a tenure that is over.
	ShardingNotHere Manifest = 60
	// ShardingData is messages to entities.
	ShardingData Manifest = 61
	// ShardingAskStats asks a member what it runs.
	ShardingAskStats Manifest = 62
	// ShardingStats answers it.
	ShardingStats Manifest = 63
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
	ReplicatorRetract:     "replicator.retract",
	SingletonIdentify:     "singleton.identify",
	SingletonHost:         "singleton.host",
	SingletonPaused:       "singleton.paused",
	SingletonFree:         "singleton.free",
	SingletonLeaving:      "singleton.leaving",
	SingletonAbstain:      "singleton.abstain",
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
	ArbiterVerdict:        "arbiter.verdict",
}

// String returns the name for logs and metrics; for an unknown number a name with the number.
func (m Manifest) String() string {
	if p := m.Plain(); p < Manifest(len(names)) && names[p] != "" {
		if m.Durable() {
			return names[p] + ".durable"
		}
		return names[p]
	}
	return fmt.Sprintf("manifest(%d)", uint32(m))
}
