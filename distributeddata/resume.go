package distributeddata

import (
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
)

// A panic of this library's own code restarts the actor, after a pause that grows. The replica outlives its actor: it
// goes on under its id with what it held, its subscriptions and the calls that wait [R29].
//
//	running ──panic──▶ broken ──Started──▶ running
//	                     └──panics again and again──▶ empty, under a new id, as after a crash

// errBroken is the answer to a call that a panic of this library has interrupted.
var errBroken = fmt.Errorf("%w: a bug of this library interrupted the call; see the log", ErrUnknown)

// crashes are the panics of the last while.
type crashes struct {
	count int
	since time.Time
}

// maxCrashes is how often the actor may panic within crashWindow heartbeats before it begins anew.
const maxCrashes, crashWindow = 6, 20

// crashed notes a panic. What the message began has happened or has not; whoever sent it is told that.
func (a *replica) crashed(why any) {
	a.l.r.panics.Add(1)
	stack := string(debug.Stack())
	_ = guarded(func() error { // the handler of the log is the application's
		a.log.Error("a bug of this library: the replicator panicked, and goes on with what it held",
			slog.String("message", fmt.Sprintf("%T", a.ctx.Message())), slog.Any("panic", why), slog.String("stack", stack))
		return nil
	})
	if a.core == nil {
		return
	}
	if now := a.shell.Now(); a.crashes.count == 0 || now.Sub(a.crashes.since) > crashWindow*a.l.cfg.HeartbeatInterval {
		a.crashes = crashes{since: now}
	}
	a.crashes.count++
	sender := a.ctx.Sender()
	if req, ok := asRequest(a.ctx.Message()); ok && sender != nil && answered(req) && !a.responded && a.nextID == a.before {
		req.refuse(errBroken, a.l.r, func(res any) { a.respond(sender, res) })
	}
}

// resume goes on after a panic.
func (a *replica) resume() {
	var effects []core.Effect
	switch {
	case a.crashes.count >= maxCrashes:
		a.beginAnew()
	case a.shell.Interrupted():
		effects = a.core.Resume(a.shell.Now(), slices.Sorted(maps.Keys(a.pending)))
	}
	a.publish()
	a.subs.caughtUp(a.core.Keys(), a.core.Seen())
	a.tellLater()
	a.carryOn(effects...)
	a.log.Info("replicator goes on", slog.String("replica", a.core.Replica().String()), slog.Int("keys", a.core.Keys().Len()))
}

// tellLater sees to it that subscribers are told what they have not been told yet.
func (a *replica) tellLater() {
	if a.subs.behind.Len() > 0 && !a.notify.Armed() {
		a.notify.Set(max(a.l.cfg.NotifyInterval, 0), nil)
	}
}

// beginAnew gives up what the replica holds, which makes it panic again and again, and begins as a new one.
func (a *replica) beginAnew() {
	a.log.Error("the replicator panics again and again, and begins empty, as a new replica",
		slog.String("was", a.core.Replica().String()), slog.Uint64("lost", a.core.Uncopied()))
	a.core, a.crashes = core.New(a.coreConfig()), crashes{}
	for _, id := range slices.Sorted(maps.Keys(a.pending)) {
		p := a.pending[id]
		delete(a.pending, id)
		p.done(core.Done{}, errBroken)
	}
	if a.view != nil {
		a.onView(a.view)
	}
}

// stop ends the life. Whatever panics in it, what is held goes to the next one.
func (a *replica) stop() {
	defer func() { a.l.finish(a.core) }()
	try := func(f func()) {
		if err := guarded(func() error { f(); return nil }); err != nil {
			a.log.Error("a bug of this library: stopping the replicator panicked", slog.Any("error", err))
		}
	}
	if a.core == nil {
		return
	}
	if a.shell.Interrupted() {
		try(a.resume)
	}
	try(func() { a.step(core.Wake{}) }) // pushes what nobody waits for
	try(a.shutDown)
}
