package singleton

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
	"github.com/concord-go/concord/singleton/internal/core"
)

// maxHops bounds how often a message or a question is passed on, since views may differ.
const maxHops = 3

// hopsHeader counts how often a message was passed on.
const hopsHeader = "concord-singleton-hops"

// memberLink is common to proxy and manager: it knows the view and exchanges envelopes.
type memberLink struct {
	binding *binding
	log     *slog.Logger
	view    *membership.View
}

func newMemberLink(l *binding) memberLink {
	return memberLink{binding: l, log: l.system.Logger().With(slog.String("singleton", l.cfg.Name))}
}

func member(m membership.Member) core.Member {
	return core.Member{ID: m.ID, Incarnation: m.Incarnation, Address: m.Address}
}

// hosts converts the view to the core's type.
func (ml *memberLink) hosts(v *membership.View) core.View {
	out := core.View{Self: member(v.Self), Removed: v.Removed}
	byAge := v.ByAge(ml.binding.cfg.Role)
	for _, m := range byAge {
		out.Hosts = append(out.Hosts, member(m))
	}
	for _, m := range ml.binding.cfg.preferred(byAge) {
		out.Preferred = append(out.Preferred, member(m))
	}
	return out
}

// send sends a message to the actor with this name at m, on behalf of member from.
func (ml *memberLink) send(ctx actor.Context, from, to core.Member, name string,
	manifest wire.Manifest, m proto.Message) {
	if ml.view == nil {
		return
	}
	payload, err := proto.Marshal(m)
	if err != nil {
		ml.log.Error("message not sent", slog.Any("error", err))
		return
	}
	h := wire.Header{Cluster: ml.view.Cluster, Member: from.ID, From: from.Incarnation,
		To: to.Incarnation}
	contain.Send(ctx.ActorSystem(), actor.NewPID(to.Address, name), wire.Seal(h, manifest, payload))
}

// open returns the sender of an envelope and its contents. It accepts only members of the view, in
// the incarnation that the view lists, and only if they address this incarnation.
func (ml *memberLink) open(env *pb.Envelope) (from core.Member, manifest wire.Manifest,
	payload []byte, ok bool) {
	if ml.view == nil || ml.view.Removed {
		return from, 0, nil, false
	}
	h, manifest, payload, err := wire.Open(env, ml.view.Cluster)
	if err != nil {
		ml.ignore(slog.Any("error", err))
		return from, 0, nil, false
	}
	m, listed := ml.view.Find(h.Member)
	if !listed || m.Incarnation != h.From || h.To != 0 && h.To != ml.view.Self.Incarnation {
		return from, 0, nil, false
	}
	return member(m), manifest, payload, true
}

// decode reports whether payload is a message of the type of m.
func (ml *memberLink) decode(payload []byte, m proto.Message) bool {
	err := proto.Unmarshal(payload, m)
	if err != nil {
		ml.ignore(slog.Any("error", err))
	}
	return err == nil
}

// ignore counts a message of the protocol that cannot be used.
func (ml *memberLink) ignore(why slog.Attr) {
	ml.binding.counts.ignored.Add(1)
	if n, due := ml.binding.ignored.Due(timer.ClockOf(ml.binding.system).Now()); due {
		ml.log.LogAttrs(context.Background(), slog.LevelWarn, "message of another member ignored", why,
			slog.Uint64("ignored", n))
	}
}

// errStray is wrapped when a message of the protocol itself is refused.
var errStray = fmt.Errorf("%w: a message of the protocol itself", ErrInvalid)

// stray reports whether a message belongs to this protocol but has a form that the protocol does
// not use: the instance must not receive it as a user's message.
func stray(msg any) bool {
	if a, ok := msg.(*asked); ok {
		msg = a.msg
	}
	switch msg.(type) {
	case *pb.SingletonIdentify, *pb.SingletonHost, *pb.SingletonPaused, *pb.SingletonFree,
		*pb.SingletonLeaving, *pb.SingletonNews, *pb.SingletonWord, *pb.SingletonState,
		*pb.SingletonStateTaken, *pb.Envelope:
		return true
	}
	return reflect.TypeOf(msg) == reflect.TypeFor[pb.Envelope]() // by value
}
