package guard

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Names of types of Proto.Actor.
const (
	activationRequest    protoreflect.FullName = "cluster.ActivationRequest"
	activationTerminated protoreflect.FullName = "cluster.ActivationTerminated"
	gossipRequest        protoreflect.FullName = "cluster.GossipRequest"
	pidRequest           protoreflect.FullName = "remote.ActorPidRequest"
	delivery             protoreflect.FullName = "cluster.DeliverBatchRequestTransport"
)

// eventStream is the actor that publishes what it receives.
const eventStream = "eventstream"

// hosted reports whether an actor is one of Proto.Actor's own, and returns the types that members
// send to it. These actors trust every message: gossip bans the members that it names, a topology
// stops virtual actors, and an incomplete message makes its receiver panic. When the placement
// actor restarts, all virtual actors of the member stop.
func hosted(id string) (types []protoreflect.FullName, ok bool) {
	switch id {
	case "activator":
		return []protoreflect.FullName{pidRequest}, true
	case "$pubsub-delivery":
		return []protoreflect.FullName{delivery}, true
	case eventStream:
		return []protoreflect.FullName{activationTerminated}, true
	case "gossip":
		return []protoreflect.FullName{gossipRequest}, true
	case "partition-activator": // its children are virtual actors of users
		return []protoreflect.FullName{activationRequest}, true
	case "EndpointSupervisor", "deadletter":
		return nil, true
	}
	return nil, strings.HasPrefix(id, "EndpointSupervisor/") || strings.HasPrefix(id, "guardian$")
}

// ofHost reports whether a type belongs to Proto.Actor.
func ofHost(pkg protoreflect.FullName) bool {
	return pkg == "actor" || pkg == "remote" || pkg == "cluster"
}

// toHost returns why a message must not reach one of Proto.Actor's own actors, or nil.
func (c *checker) toHost(k kind, data []byte, to *target) *refusal {
	name := k.of.Descriptor().FullName()
	if to.id == eventStream && k.harmless {
		return nil // an event of a user
	}
	if !slices.Contains(to.accepts, name) {
		return &refusal{forged, "for an actor of Proto.Actor"}
	}
	m := k.of.New()
	if proto.Unmarshal(data, m.Interface()) != nil {
		return &refusal{badMessage, "cannot be decoded"}
	}
	switch {
	case name == activationRequest &&
		!c.guard.process.runs(textIn(m, "cluster_identity", "kind")):
		return &refusal{badMessage, "an activation of an unknown kind"}
	case name == activationTerminated && textIn(m, "pid", "Address") != c.peer:
		return &refusal{forged, "the terminated activation is not at the peer"}
	case name == gossipRequest && !has(m, "state"):
		return &refusal{badMessage, "gossip without a state"}
	}
	return nil
}

// listed reports whether the peer is a member.
func (c *checker) listed() bool {
	v := c.guard.process.view()
	if v == nil {
		return false
	}
	_, ok := v.FindAddress(c.peer)
	return ok
}

func has(m protoreflect.Message, field protoreflect.Name) bool {
	fd := m.Descriptor().Fields().ByName(field)
	return fd != nil && m.Has(fd)
}

// textIn returns a text field of a message in a message, or "" if there is none.
func textIn(m protoreflect.Message, message, field protoreflect.Name) string {
	if !has(m, message) {
		return ""
	}
	inner := m.Get(m.Descriptor().Fields().ByName(message)).Message()
	fd := inner.Descriptor().Fields().ByName(field)
	if fd == nil || fd.Kind() != protoreflect.StringKind {
		return ""
	}
	return inner.Get(fd).String()
}
