package node

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/concord-go/concord/internal/membership"
)

// accountant is a provider that knows why members that it expects are not listed.
type accountant interface{ Account() string }

// seen describes for human readers which members this one sees and which it has lost, and what the
// provider knows about the others.
func seen(members *membership.Service, p cluster.ClusterProvider) string {
	s := inView(members)
	if a, ok := p.(accountant); ok {
		if others := a.Account(); others != "" {
			s += "; not members: " + others
		}
	}
	return s
}

func inView(members *membership.Service) string {
	v := members.View()
	if v == nil {
		return "its own provider does not list it yet"
	}
	s := fmt.Sprintf("it sees %d: %s", len(v.Members), membership.Addresses(v.Members))
	if lost := members.Lost(); len(lost) > 0 {
		s += "; missing " + membership.Names(lost)
	}
	return s
}

// sayEvery is how often a member that waits for others logs that it waits.
const sayEvery = 10 * time.Second

// awaitMembers waits until this member sees at least atLeast members, itself included.
func awaitMembers(ctx context.Context, c *cluster.Cluster, atLeast int) error {
	if atLeast <= 1 {
		return nil
	}
	system := c.ActorSystem
	members := membership.Attach(system)
	began := time.Now()
	say := time.NewTicker(sayEvery)
	defer say.Stop()
	enough := make(chan struct{}, 1)
	pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		if v, ok := ctx.Message().(*membership.View); ok && len(v.Members) >= atLeast {
			select {
			case enough <- struct{}{}:
			default:
			}
		}
	}))
	members.Subscribe(pid)
	defer system.Root.Stop(pid)
	defer members.Unsubscribe(pid)
	for {
		select {
		case <-enough:
			return nil
		case <-members.Removed():
			return members.Cause()
		case <-say.C:
			system.Logger().Warn("waiting for members", slog.Int("needed", atLeast),
				slog.String("seen", seen(members, c.Config.ClusterProvider)))
		case <-ctx.Done():
			return fmt.Errorf("%d members needed, after %v %s: %w", atLeast,
				time.Since(began).Round(time.Second), seen(members, c.Config.ClusterProvider),
				context.Cause(ctx))
		}
	}
}
