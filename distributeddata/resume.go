package distributeddata

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/bugs"
	"github.com/concord-go/concord/internal/timer"
)

// A panic of this library's own code restarts the actor, after a growing pause. The replica
// outlives its actor: it keeps its id, its state, its subscriptions and the pending calls [R41].
//
//	running ──panic──▶ interrupted ──Started──▶ running
//	                        └──repeated panics──▶ stopped, with its state, until the incarnation ends

// errBroken is the answer to a call that a panic of this library has interrupted.
var errBroken = fmt.Errorf("%w: a bug of this library interrupted the call; see the log",
	ErrUnknown)

// crashes counts the recent panics.
type crashes struct {
	count int
	since time.Time
}

// maxCrashes is the number of panics within crashWindow heartbeats after which the actor stops
// serving.
const maxCrashes, crashWindow = 6, 20

// crashed records a panic. The operation of the message may or may not have happened; its sender
// gets an error that says so.
func (a *replica) crashed(why any) {
	bugs.Report(a.l.system, a.component(), fmt.Sprintf("handling a %T", a.ctx.Message()), why,
		&a.l.r.panics)
	if !a.begun() {
		return
	}
	if now := a.volatile.shell.Now(); a.crashes.count == 0 ||
		now.Sub(a.crashes.since) > crashWindow*a.l.cfg.HeartbeatInterval {
		a.crashes = crashes{since: now}
	}
	a.crashes.count++
	to := a.asker
	if req, ok := asRequest(a.ctx.Message()); ok && to.waits() && answered(req) && !a.responded &&
		a.nextID == a.before {
		req.refuse(errBroken, a.l.r, func(res any) { a.respond(to, res) })
	}
}

// resume continues after a panic.
func (a *replica) resume() {
	effects := make([][]core.Effect, len(a.domains))
	if a.broken {
		return
	}
	if a.crashes.count >= maxCrashes {
		a.stopServing()
		return
	}
	for i, d := range a.domains {
		if d.shell.Interrupted() {
			d.followAnew()
			effects[i] = d.core.Resume(d.shell.Now(), d.calls())
			d.front.committed(a.publish, d.shell.Now())
		}
	}
	a.publish()
	a.caughtUp()
	a.expirer.start()
	a.tellLater()
	for i, d := range a.domains {
		d.carryOn(effects[i]...)
		d.catchUp()
		d.log.Info("replicator resumed", slog.String("replica", d.core.Replica().String()),
			slog.Int("keys", d.core.Keys().Len()))
	}
}

// tellLater makes sure that pending changes are sent to subscribers.
func (a *replica) tellLater() {
	if a.subs.behind.Len() > 0 && !a.notify.Armed() {
		a.notify.Set(max(a.l.cfg.NotifyInterval, 0), nil)
	}
}

// errStopped answers every request to a replica that has stopped serving.
var errStopped = fmt.Errorf("%w: it stopped serving after repeated panics, which are bugs of this library; its state is kept until the process ends: see the log, and restart the process",
	ErrClosed)

// stopServing ends a replica that panics again and again. It keeps its state: it may hold what no
// other member has, and reads at Local and snapshots show it. It answers every request with an
// error and sends nothing, so other members treat it as one that cannot be reached.
func (a *replica) stopServing() {
	a.broken = true
	for _, d := range a.domains {
		d.front.close()
		a.try("stopping the replicator", func() {
			d.shell.Stop()
			d.log.Error("the replicator panics repeatedly and has stopped serving; its state is kept for inspection until the process ends",
				slog.String("replica", d.core.Replica().String()),
				slog.Int("keys", d.core.Keys().Len()),
				slog.Uint64("not-known-elsewhere", d.core.Uncopied()))
		})
	}
	for _, t := range []*timer.Timer{a.notify, a.commits, a.patience} {
		a.try("stopping a timer", t.Stop)
	}
	a.try("stopping the replicator", a.expirer.stop)
	for _, w := range a.waiting {
		a.try("answering a call", func() { a.refuse(w, errStopped) })
	}
	a.waiting = nil
	for _, id := range slices.Sorted(maps.Keys(a.pending)) {
		p := a.pending[id]
		delete(a.pending, id)
		a.try("answering a call", func() { a.ended(p, core.Done{}, errBroken) })
	}
	if old := a.l.published.Load(); old != nil {
		next := *old.past()
		next.stopped = errStopped
		a.l.published.Store(&next)
		a.l.r.loops.rouse()
	}
}

// receiveBroken answers requests to a replica that has stopped serving.
func (a *replica) receiveBroken(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Stopping:
		a.stop()
		return
	case *posted:
		if !m.take() {
			return
		}
		a.asker = asker{call: m}
	}
	if req, ok := asRequest(ctx.Message()); ok && answered(req) && a.asker.waits() {
		req.refuse(errStopped, a.l.r, func(res any) { a.respond(a.asker, res) })
	}
}

// try calls f, and logs a panic of it.
func (a *replica) try(what string, f func()) {
	if err := guarded(func() error { f(); return nil }); err != nil {
		a.log.Error("a bug of this library: a panic", slog.String("in", what), slog.Any("error", err))
	}
}

// stop ends the incarnation. Its state goes to the next incarnation even if a part of stop panics.
func (a *replica) stop() {
	defer func() {
		if a.durable != nil {
			a.l.r.disk.attach(nil)
		}
		a.stopped = true
		a.l.finish(a.cores())
	}()
	if !a.begun() {
		return
	}
	for _, d := range a.domains {
		d.front.close()
	}
	const stopping = "stopping the replicator"
	if !a.broken {
		if slices.ContainsFunc(a.domains, func(d *domain) bool { return d.shell.Interrupted() }) {
			a.try(stopping, a.resume)
		}
		for _, d := range a.domains {
			a.try(stopping, func() { d.step(core.Wake{}) }) // pushes updates without a waiter
		}
	}
	a.try(stopping, a.shutDown)
}

// cores returns the cores of the domains, or nil if the actor has not started.
func (a *replica) cores() (all held) {
	if a.begun() {
		for _, d := range a.domains {
			all = append(all, d.core)
		}
	}
	return all
}
