package membership

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/shell"
	"github.com/concord-go/concord/internal/timer"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// ActorName is the name of the membership actor of every member.
const ActorName = "concord-membership"

// component is the name of the actor in reports of bugs.
const component = "membership"

// memberActor is the actor around the core. The same value survives restarts of the actor.
type memberActor struct {
	service *Service
	core    *core
	shell   *shell.Shell[event, effect]
	split   bool      // the cluster is split
	since   time.Time // since when, if that was logged
	whole   time.Time // when the last split was over
}

// quiet is how long a split must have been over before the next one is logged: of several members
// that rejoin, one may be heard of after another.
const quiet = 30 * time.Second

func newMemberActor(s *Service, c *core) *memberActor {
	a := &memberActor{service: s, core: c}
	a.shell = shell.New(shell.Config[event, effect]{Name: component, Core: c, Wake: wake{},
		CarryOut: a.carryOut})
	return a
}

// Receive implements actor.Actor.
func (s *memberActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		s.shell.Start(ctx)
		s.step(ctx, wake{})
	case *topology:
		s.step(ctx, *m)
	case *pb.Envelope:
		s.onEnvelope(ctx, m)
	case arbiter, leave:
		s.step(ctx, m)
	case *timer.Fired:
		s.shell.Fired(ctx, m)
	case *actor.Stopping:
		s.step(ctx, leave{})
		s.shell.Stop()
	case *actor.Stopped:
		s.service.actorStopped()
	}
}

func (s *memberActor) onEnvelope(ctx actor.Context, env *pb.Envelope) {
	s.service.counters.received.Add(1)
	r, err := decode(env, s.core.cluster)
	if err != nil {
		s.service.counters.dropped[why(err)].Add(1)
		ctx.Logger().Debug("membership hello rejected", slog.Any("error", err))
		return
	}
	s.step(ctx, r)
}

func (s *memberActor) step(ctx actor.Context, e event) { s.shell.Step(ctx, e) }

func (s *memberActor) carryOut(ctx actor.Context, e effect) {
	switch e := e.(type) {
	case send:
		s.send(ctx, e)
	case publish:
		s.publish(ctx, e.view)
	case name:
		s.name(ctx, e)
	case asked:
		s.service.counters.asked.Add(1)
	case noted:
		s.note(ctx, e)
	case divided:
		s.divided(ctx, e)
	case replaced:
		s.service.replaced(e.address)
	case dropped:
		s.service.counters.dropped[e.why].Add(1)
	}
}

func (s *memberActor) send(ctx actor.Context, e send) {
	env, err := encode(s.header(e.to), e.hello)
	s.post(ctx, e.address, env, err)
}

func (s *memberActor) name(ctx actor.Context, e name) {
	env, err := encodeNames(s.header(e.to), e.addresses)
	s.post(ctx, e.address, env, err)
}

func (s *memberActor) header(to uint64) wire.Header {
	return wire.Header{Cluster: s.core.cluster, Member: s.core.self.ID, From: s.core.incarnation,
		To: to}
}

func (s *memberActor) post(ctx actor.Context, address string, env *pb.Envelope, err error) {
	if err != nil {
		ctx.Logger().Error("membership hello not sent", slog.String("address", address),
			slog.Any("error", err))
		return
	}
	s.service.counters.sent.Add(1)
	contain.Send(ctx.ActorSystem(), actor.NewPID(address, ActorName), env)
}

// notices are log lines for operators.
var notices = [numberOfNotices]struct {
	level slog.Level
	text  string
}{
	inConflict:  {slog.LevelDebug, "a running member and this one do not list each other"},
	split:       {slog.LevelDebug, "that has lasted: one of the two must rejoin"},
	agreement:   {slog.LevelInfo, "members list each other again"},
	permitGiven: {slog.LevelInfo, "another member may step down for this one"},
	permitTaken: {slog.LevelInfo, "this member steps down for another partition of the cluster"},
	goodbye:     {slog.LevelDebug, "member leaves gracefully"},
}

func (s *memberActor) note(ctx actor.Context, e noted) {
	s.service.counters.noted[e.what].Add(1)
	n := notices[e.what]
	ctx.Logger().Log(context.Background(), n.level, n.text, //nolint:sloglint // of a table of constants
		slog.String("member", s.core.self.ID),
		slog.String("other", e.other.ID), slog.String("address", e.other.Address))
}

// divided logs the beginning of a split, in one line whatever the number of members, and its end.
func (s *memberActor) divided(ctx actor.Context, e divided) {
	s.service.divided(e)
	now, was := s.shell.Now(), s.split
	s.split = len(e.others) > 0
	switch {
	case was && !s.split:
		if s.whole = now; !s.since.IsZero() {
			ctx.Logger().Info("the cluster is no longer split",
				slog.String("address", s.core.self.Address),
				slog.Duration("after", now.Sub(s.since).Round(time.Millisecond)))
		}
		s.since = time.Time{}
		return
	case was || !s.split || now.Sub(s.whole) < quiet:
		return
	}
	s.since = now
	ctx.Logger().Warn("the cluster is split: running members and this one do not list each other",
		slog.String("address", s.core.self.Address), slog.String("others", Addresses(e.others)),
		slog.String("then", "the members of the smaller side rejoin the other one"))
}

func (s *memberActor) publish(ctx actor.Context, v *View) {
	switch {
	case v.Removed:
		ctx.Logger().Warn("this incarnation of the member has ended: it rejoins with a new id",
			slog.String("cluster", v.Cluster), slog.String("address", v.Self.Address),
			slog.Any("cause", v.Cause))
	default:
		ctx.Logger().Debug("membership view", slog.String("member", v.Self.ID),
			slog.Int("members", len(v.Members)), slog.Uint64("hash", v.Hash))
	}
	s.service.publish(v)
}
