package guard

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/concord-go/concord/internal/linear"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/wire"
)

// checkIndices checks the values that Proto.Actor uses as indices without a bounds check.
func checkIndices(b *remote.MessageBatch) error {
	for _, e := range b.Envelopes {
		switch {
		case e == nil:
			return errors.New("no envelope")
		case e.TypeId < 0 || int(e.TypeId) >= len(b.TypeNames):
			return fmt.Errorf("type %d of %d", e.TypeId, len(b.TypeNames))
		case e.Target < 0 || int(e.Target) >= len(b.Targets):
			return fmt.Errorf("target %d of %d", e.Target, len(b.Targets))
		case e.Sender < 0 || int(e.Sender) > len(b.Senders):
			return fmt.Errorf("sender %d of %d", e.Sender, len(b.Senders))
		case e.SerializerId != 0:
			// Proto.Actor always sends with 0, protobuf.
			return fmt.Errorf("serializer %d", e.SerializerId)
		}
	}
	return nil
}

// maxForeign bounds the sender addresses that are neither the peer's nor a member's: over the
// lifetime of a stream of a member, and within a minute those that all strangers name. Some are
// legitimate: a member may relay a message whose sender this member does not know yet. Proto.Actor
// keeps a goroutine and a queue for each address that it answers.
const maxForeign = 32

// checker decides which messages of one peer Proto.Actor may see. It is used by one goroutine.
type checker struct {
	guard   *Guard
	peer    string // the proven address of the peer
	self    string
	foreign map[string]struct{}
	watches watches
	total   int // bytes of the messages of this batch
	budget  budget
}

func newChecker(g *Guard, peer, self string) *checker {
	return &checker{guard: g, peer: peer, self: self, foreign: map[string]struct{}{}}
}

// refusal gives the reason why a message must not reach an actor.
type refusal struct {
	reason reason
	why    string
}

// filter removes from a batch the messages that must not reach an actor. The indices of the batch
// must have been checked.
func (c *checker) filter(b *remote.MessageBatch) {
	targets := make([]target, len(b.Targets))
	for i, listed := 0, c.listed(); i < len(b.Targets); i++ {
		address, id := targetOf(b, i)
		targets[i] = c.target(address, id, listed)
	}
	senders := make([]*refusal, len(b.Senders))
	for i, s := range b.Senders {
		senders[i] = c.sender(s)
	}
	c.total = 0
	for _, e := range b.Envelopes {
		c.total += len(e.MessageData)
	}
	c.budget = budgetOf(c.total <= small || c.listed()) // nothing is weighed in a small batch
	types := make([]kind, len(b.TypeNames))
	for i, name := range b.TypeNames {
		types[i] = kindOf(name)
	}
	b.Envelopes = slices.DeleteFunc(b.Envelopes, func(e *remote.MessageEnvelope) bool {
		to := &targets[e.Target]
		r := to.refused
		if r == nil && e.Sender > 0 {
			r = senders[e.Sender-1]
		}
		k := types[e.TypeId]
		if r == nil && (!k.harmless || to.host || to.introduces || k.lists ||
			c.weighs(k, e.MessageData)) {
			r = c.message(k, e.MessageData, to)
		}
		if r != nil {
			c.guard.process.refuse(r.reason, "remoting message", r.why)
		}
		return r != nil
	})
}

// targetOf returns the address and the id of a target. One version of Proto.Actor sends no address.
func targetOf(b *remote.MessageBatch, i int) (address, id string) {
	switch targets := any(b.Targets).(type) {
	case []*actor.PID:
		return targets[i].GetAddress(), targets[i].GetId()
	case []string:
		return local, targets[i]
	}
	return "", ""
}

// local is the address of PIDs of a system that has no address yet. Proto.Actor resolves it like
// its own address.
const local = "nonhost"

// target is what the guard must know of the receiver of a message. It is found once for each target
// of a batch.
type target struct {
	id      string
	refused *refusal
	host    bool // an actor of Proto.Actor
	accepts []protoreflect.FullName
	// introduces is set if the peer is not listed and may only introduce itself.
	introduces bool
}

// target rejects targets that Proto.Actor would relay to another address and, if the peer is not a
// member, actors that are not public.
func (c *checker) target(address, id string, listed bool) target {
	t := target{id: id}
	t.accepts, t.host = hosted(id)
	switch {
	case address != c.self && address != local:
		t.refused = &refusal{relayed, "for another address"}
	case listed: // also with an answer: only a process that got the question knows the name
	case id == membership.ActorName:
		t.introduces = true
	case t.host || !c.guard.public(id):
		t.refused = &refusal{unlisted, "for an actor that is not in Config.Public"}
	}
	return t
}

// public reports whether processes that are not members reach an actor: those of Config.Public and
// their children.
func (g *Guard) public(id string) bool {
	for _, p := range g.cfg.Public {
		if rest, ok := strings.CutPrefix(id, p); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// sender rejects sender addresses that no member has, except for a few: an answer would make this
// member dial that address.
func (c *checker) sender(pid *actor.PID) *refusal {
	a := pid.GetAddress()
	if a == c.peer || a == c.self || a == local {
		return nil
	}
	if v := c.guard.process.view(); v != nil {
		if _, ok := v.FindAddress(a); ok {
			return nil
		}
	}
	if c.listed() && !nameForeign(c.foreign, a) ||
		!c.listed() && !c.guard.strangers.names(a, time.Now()) {
		return &refusal{forged, "its sender's address belongs to no member"}
	}
	return nil
}

// kind is what the guard must know of a message type. It is found once for each type of a batch.
type kind struct {
	of       protoreflect.MessageType // nil: unknown
	example  proto.Message
	host     bool // a type of Proto.Actor
	nested   bool // Proto.Actor decodes messages in it before an actor sees them, without bounds
	harmless bool // its messages may reach every actor of users, if they are small
	lists    bool // its messages may have lists of numbers
}

func kindOf(name string) kind {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return kind{}
	}
	k := kind{of: mt, example: mt.Zero().Interface()}
	k.host = ofHost(mt.Descriptor().ParentFile().Package())
	_, system := k.example.(actor.SystemMessage)
	_, k.nested = k.example.(remote.RootSerialized)
	k.harmless = !k.host && !system && !k.nested && name != envelopeName
	k.lists = linear.Lists(mt.Descriptor())
	return k
}

// weighs reports whether what a message takes must be calculated.
func (c *checker) weighs(k kind, data []byte) bool {
	return len(data) > small || c.total > c.budget.unweighed || k.lists && c.budget.lists
}

// message returns why a message must not reach an actor, or nil if it may.
func (c *checker) message(k kind, data []byte, to *target) *refusal {
	if k.of == nil {
		return &refusal{badMessage, "unknown type"}
	}
	if !to.host && k.of.Descriptor().FullName() == envelopeName {
		return c.envelope(data, to.id)
	}
	if to.introduces {
		return &refusal{unlisted, "no introduction"}
	}
	if c.weighs(k, data) {
		if err := c.budget.check(k.of.Descriptor(), data); err != nil {
			return &refusal{tooMuch, err.Error()}
		}
	}
	if k.lists {
		if err := linear.Check(k.of.Descriptor(), data); err != nil {
			return &refusal{tooMuch, err.Error()}
		}
	}
	if to.host {
		return c.toHost(k, data, to)
	}
	if k.nested && !c.listed() {
		return &refusal{unlisted, "messages in a message"}
	}
	switch k.example.(type) {
	case *actor.Watch:
		w := &actor.Watch{}
		if proto.Unmarshal(data, w) != nil {
			return &refusal{badMessage, "cannot be decoded"}
		}
		return c.watch(w.Watcher, to.id)
	case *actor.Unwatch:
		w := &actor.Unwatch{}
		if proto.Unmarshal(data, w) != nil || w.Watcher == nil {
			return &refusal{badMessage, "unwatch without watcher"}
		}
		if r := c.ofPeer(w.Watcher, "watcher"); r != nil {
			return r
		}
		c.watches.remove(w.Watcher, to.id)
		c.guard.strangers.unwatch(w.Watcher, to.id)
		return nil
	case *actor.Terminated:
		w := &actor.Terminated{}
		if proto.Unmarshal(data, w) != nil || w.Who == nil {
			return &refusal{badMessage, "termination without an actor"}
		}
		return c.ofPeer(w.Who, "terminated actor")
	case *actor.PoisonPill:
		return &refusal{badMessage, "stops an actor"}
	case actor.SystemMessage:
		return &refusal{badMessage, "system message"}
	}
	return nil
}

// ofPeer rejects an actor that is not at the peer. A member watches and terminates only its own
// actors: Proto.Actor would believe a Terminated for an actor of any other member, including this
// one.
func (c *checker) ofPeer(pid *actor.PID, what string) *refusal {
	if pid.GetAddress() == c.peer {
		return nil
	}
	return &refusal{forged, what + " is not at the peer"}
}

func (c *checker) watch(watcher *actor.PID, target string) *refusal {
	if watcher == nil {
		return &refusal{badMessage, "watch without watcher"}
	}
	if r := c.ofPeer(watcher, "watcher"); r != nil {
		return r
	}
	add := c.watches.add
	if !c.listed() {
		add = c.guard.strangers.watch
	}
	if !add(watcher, target, c.guard.process.lives) {
		return &refusal{tooMuch, "too many watches"}
	}
	return nil
}

// envelopeName is the type of all messages of this module.
const envelopeName = "concord.v1.Envelope"

// Field numbers of Envelope and Hello.
const (
	inEnvelopeManifest protowire.Number = 2
	inEnvelopeMember   protowire.Number = 4
	inEnvelopePayload  protowire.Number = 7
	inHelloAddress     protowire.Number = 1
)

// envelope rejects messages that are not for the actor at which they are directed, messages in the
// name of a member other than the peer, and, of a process that is not listed, everything except an
// introduction.
func (c *checker) envelope(data []byte, to string) *refusal {
	listed := c.listed()
	if len(data) > maxStrangeOurs && !listed {
		return &refusal{unlisted, fmt.Sprintf("more than %d bytes", maxStrangeOurs)}
	}
	manifest, member, payload, err := readHead(data)
	if err != nil {
		return &refusal{badMessage, "cannot be decoded"}
	}
	introduces := manifest == wire.MembershipHello || manifest == wire.MembershipOthers
	switch {
	case !manifest.For(to):
		return &refusal{badMessage, "its receiver does not take such messages"}
	case !listed && !introduces:
		return &refusal{unlisted, "a message of the protocol"}
	}
	at := ""
	if v := c.guard.process.view(); v != nil {
		if m, ok := v.Find(member); ok {
			at = m.Address
		} else if !introduces {
			return &refusal{unlisted, "names no member"}
		}
	}
	switch {
	case manifest == wire.SingletonIdentify: // members pass on the question of another member
		return nil
	case at != "" && at != c.peer:
		return &refusal{forged, "in the name of another member"}
	case manifest == wire.MembershipHello && helloAddress(payload) != c.peer:
		return &refusal{forged, "introduces another address"}
	}
	return nil
}

// readHead decodes the needed fields of an Envelope. If a field occurs twice the last one counts,
// as in the decoder.
func readHead(data []byte) (manifest wire.Manifest, member string, payload []byte, err error) {
	for len(data) > 0 {
		n, t, size := protowire.ConsumeTag(data)
		if size < 0 {
			return 0, "", nil, protowire.ParseError(size)
		}
		data = data[size:]
		switch {
		case n == inEnvelopeManifest && t == protowire.VarintType:
			var v uint64
			v, size = protowire.ConsumeVarint(data)
			manifest = wire.Manifest(v)
		case n == inEnvelopeMember && t == protowire.BytesType:
			var v []byte
			v, size = protowire.ConsumeBytes(data)
			member = string(v)
		case n == inEnvelopePayload && t == protowire.BytesType:
			payload, size = protowire.ConsumeBytes(data)
		default:
			size = protowire.ConsumeFieldValue(n, t, data)
		}
		if size < 0 {
			return 0, "", nil, protowire.ParseError(size)
		}
		data = data[size:]
	}
	return manifest, member, payload, nil
}

// helloAddress returns the address in a Hello, or "" if it has none.
func helloAddress(payload []byte) (address string) {
	err := fields(payload, func(n protowire.Number, value []byte) error {
		if n == inHelloAddress {
			address = string(value)
		}
		return nil
	})
	if err != nil {
		return ""
	}
	return address
}
