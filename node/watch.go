package node

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
)

// gather is how long a change of the view waits to be logged: one fault drops several members one
// after the other, in two rounds of the provider, and the good-bye of a member may come after its
// removal.
const gather = 1200 * time.Millisecond

// watch logs which members are dropped, replaced or back, in one line for each fault.
type watch struct {
	log     *slog.Logger
	members *membership.Service
	ttl     time.Duration    // of the leases; 0: there is no lease store
	rule    bool             // the majority hosts
	view    *membership.View // the latest
	said    *membership.View // the last one logged
	lost    []string         // addresses of dropped members that are not back
	since   map[string]time.Time
	account func() string // what the provider knows about hosts that are no members
	counted *atomic.Int64 // how many members there are, by the arbiter; 0: not known
	hooks   *lifecycle.Hooks
	tick    *timer.Timer
	waits   bool // for tick
}

// startWatch logs the changes of one incarnation.
func (r *runner) startWatch(n *Node) {
	w := &watch{log: r.cfg.Logger, members: membership.Attach(n.System), rule: r.majorityHosts(),
		since: map[string]time.Time{}, hooks: lifecycle.Of(n.System), counted: &n.counted}
	if n.Cluster != nil {
		if a, ok := n.Cluster.Config.ClusterProvider.(accountant); ok {
			w.account = a.Account
		}
	}
	if r.session != nil {
		w.ttl = r.session.TTL()
	}
	w.members.Subscribe(n.System.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return w
	})))
}

// Receive implements actor.Actor.
func (w *watch) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		w.tick = timer.New(ctx.ActorSystem(), ctx.Self())
	case *actor.Stopping:
		w.tick.Stop()
	case *membership.View:
		if w.view = m; w.said == nil {
			w.said = m
		} else if !w.waits {
			w.waits = true
			w.tick.Set(gather, nil)
		}
	case *timer.Fired:
		if w.tick.Mine(m) {
			w.waits = false
			w.report(w.said, w.view)
			w.said = w.view
		}
	}
}

// why returns what the provider knows about hosts that are no members.
func (w *watch) why() slog.Attr {
	if w.account == nil || w.account() == "" {
		return slog.Attr{}
	}
	return slog.String("silent", w.account())
}

// report logs what has changed from one view to another.
func (w *watch) report(was, v *membership.View) {
	if v.Removed || w.hooks.Stopping() {
		return // the end of the incarnation is logged
	}
	here := map[string]bool{}
	for _, m := range v.Members {
		here[m.Address] = true
	}
	lost := w.members.Lost()
	var dropped, left, back []string
	var away time.Duration // the longest of those that are back
	for _, m := range was.Members {
		switch {
		case here[m.Address]:
		case slices.Contains(lost, m.Address):
			dropped = append(dropped, m.Address)
			w.since[m.Address] = time.Now()
		default:
			left = append(left, m.Address)
		}
	}
	for _, address := range w.lost {
		if here[address] {
			back = append(back, address)
			away = max(away, time.Since(w.since[address]).Round(100*time.Millisecond))
		}
		if here[address] || !slices.Contains(lost, address) {
			delete(w.since, address)
		}
	}
	w.lost = lost
	replaced := slices.DeleteFunc(w.members.Replaced(), func(address string) bool {
		return slices.Contains(back, address) // logged as dropped
	})
	all := len(v.Members) + len(w.lost)
	if n := int(w.counted.Load()); n > 0 {
		all = max(n, len(v.Members)) // as the line about stepping down
	}
	remain := slog.String("members", fmt.Sprintf("%d of %d", len(v.Members), all))
	if len(dropped) > 0 {
		w.log.Warn("members dropped: the provider does not list them any more",
			slog.String("dropped", membership.Names(dropped)), remain, w.why(),
			slog.String("hosted", cmp.Or(w.hooks.Hosted(dropped), "nothing that is known here")),
			slog.String("then", w.then(len(v.Members), all)))
	}
	if len(replaced) > 0 {
		w.log.Warn("members replaced: they ended without leaving, and run again",
			slog.String("replaced", membership.Names(replaced)), remain,
			slog.String("hosted", cmp.Or(w.hooks.Hosted(replaced), "nothing that is known here")),
			slog.String("then", w.moves()),
			slog.String("check", "why they ended: their logs, or those of their supervisor"))
	}
	if len(left) > 0 {
		w.log.Info("members left", slog.String("left", membership.Names(left)), remain)
	}
	if len(back) > 0 {
		w.log.Info("members are back", slog.String("back", membership.Names(back)), remain,
			slog.Duration("after", away))
	}
}

// moves says what follows for singletons and shards of members that were replaced.
func (w *watch) moves() string {
	if w.ttl == 0 {
		return "there is no lease store, and nothing moves"
	}
	return fmt.Sprintf("what they hosted moves when their leases end, in at most %v", w.ttl)
}

// then says what follows for singletons and shards.
func (w *watch) then(here, all int) string {
	switch {
	case w.ttl == 0, !w.rule:
		return w.moves()
	case 2*here > all:
		return fmt.Sprintf("this side has the majority and hosts: what they hosted moves here when "+
			"they step down, or when their leases end, in at most %v", w.ttl)
	}
	return fmt.Sprintf("this side has no majority: in at most %v its singletons and shards stop, "+
		"unless the lease store decides that it hosts", w.ttl)
}
