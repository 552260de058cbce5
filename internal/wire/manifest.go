package wire

import "fmt"

// Manifest says what a payload is. Numbers are never used again for anything else; a change of a
// payload that old nodes cannot read takes a new number.
type Manifest uint32

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
)

// Arbiter, 70 to 74.
const (
	// ArbiterVerdict tells which side of a partition hosts, as far as the sender knows.
	ArbiterVerdict Manifest = 70
)

// Ranges of the components that name theirs here when they are built.
const (
	ShardingFirst Manifest = 50
	ShardingLast  Manifest = 69
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
	SingletonAbstain:      "singleton.abstain",
	ArbiterVerdict:        "arbiter.verdict",
}

// String returns the name for logs and metrics; for an unknown number a name with the number.
func (m Manifest) String() string {
	if m < Manifest(len(names)) && names[m] != "" {
		return names[m]
	}
	return fmt.Sprintf("manifest(%d)", uint32(m))
}
