package distributeddata

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/bugs"
)

// A panic of this library's own code restarts the actor, after a growing pause. The replica
// outlives its actor: it keeps its id, its state, its subscriptions and the pending calls [R29].
//
//	running ──panic──▶ broken ──Started──▶ running
//	                     └──repeated panics──▶ empty, under a new id, as after a crash

// errBroken is the answer to a call that a panic of this library has interrupted.
var errBroken = fmt.Errorf("%w: a bug of this library interrupted the call; see the log",
	ErrUnknown)

// crashes counts the recent panics.
type crashes struct {
	count int
	since time.Time
}

// maxCrashes is the number of panics within crashWindow heartbeats after which the actor starts
// empty.
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
	if a.crashes.count >= maxCrashes {
		a.beginAnew()
	} else {
		for i, d := range a.domains {
			if d.shell.Interrupted() {
				d.followAnew()
				effects[i] = d.core.Resume(d.shell.Now(), d.calls())
			}
		}
	}
	a.publish()
	a.subs.caughtUp(a.l.published.Load())
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

// beginAnew discards the state of the replica, which causes repeated panics, and starts as a new
// replica.
func (a *replica) beginAnew() {
	for _, d := range a.domains {
		d.log.Error("the replicator panics repeatedly; it starts empty, as a new replica",
			slog.String("was", d.core.Replica().String()), slog.Uint64("lost", d.core.Uncopied()))
		d.begin()
		d.followAnew()
	}
	a.crashes = crashes{}
	if a.durable != nil {
		a.openDisk()
	}
	for _, id := range slices.Sorted(maps.Keys(a.pending)) {
		p := a.pending[id]
		delete(a.pending, id)
		a.ended(p, core.Done{}, errBroken)
	}
}

// stop ends the life. Its state goes to the next life even if a part of stop panics.
func (a *replica) stop() {
	defer func() {
		if a.durable != nil {
			a.l.r.disk.attach(nil)
		}
		a.stopped = true
		a.l.finish(a.cores())
	}()
	try := func(f func()) {
		if err := guarded(func() error { f(); return nil }); err != nil {
			a.log.Error("a bug of this library: stopping the replicator panicked",
				slog.Any("error", err))
		}
	}
	if !a.begun() {
		return
	}
	if slices.ContainsFunc(a.domains, func(d *domain) bool { return d.shell.Interrupted() }) {
		try(a.resume)
	}
	for _, d := range a.domains {
		try(func() { d.step(core.Wake{}) }) // pushes updates without a waiter
	}
	try(a.shutDown)
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
