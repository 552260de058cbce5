package distributeddata

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/early"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
)

// binding is the part of a Replicator that belongs to one incarnation of its member. Nothing that
// outlives the incarnation may reference it, since it keeps an actor system alive.
//
//	bound ──the member is up──▶ running ──close──▶ over
//	  └────────────────close────────────────────────▲
type binding struct {
	r         *Replicator
	system    *actor.ActorSystem
	cfg       Config
	members   *membership.Service
	pid       *actor.PID // of the actor, once it runs
	published atomic.Pointer[replicatorView]
	state     atomic.Int32
	running   chan struct{}   // closed when the actor runs
	ready     chan struct{}   // closed when the replica has become ready for the first time
	ended     context.Context // done when the actor has stopped
	end       context.CancelFunc
	spawning  sync.Once
	closing   sync.Once
	timers    timers // timers for calls
	ttls      *lifetimes
	front     *front
	warned    [limitCount]atomic.Int64 // when a limit was last logged as near
	unobserve func() error             // unregisters the metrics
	histograms
	failure error // why the actor could not be spawned; set before ended
	err     error // the result of closing; set before closing is done
}

// States of an incarnation.
const (
	bound int32 = iota
	running
	over
)

// bind starts an incarnation of the replicator on system.
func (r *Replicator) bind(system *actor.ActorSystem, cfg Config) error {
	l := &binding{
		r: r, system: system, cfg: cfg, members: membership.Attach(system),
		ttls:    newLifetimes(cfg, timer.ClockOf(system)),
		running: make(chan struct{}), ready: make(chan struct{}),
	}
	l.ended, l.end = context.WithCancel(context.Background())
	l.front = newFront(l)
	if _, ok := system.ProcessRegistry.Add(&r.ingress, r.pid.Id); !ok {
		return fmt.Errorf("%w: Name %q: this actor system has a replicator of that name already",
			ErrInvalid, cfg.Name)
	}
	undo := func() { system.ProcessRegistry.Remove(r.pid) }
	var err error
	if l.unobserve, l.histograms, err = r.observe(cfg.Meters); err != nil {
		undo()
		return fmt.Errorf("distributeddata: metrics: %w", err)
	}
	if _, err := lifecycle.OnStop(system, lifecycle.Replicator, cfg.Name, l.close); err != nil {
		undo()
		return fmt.Errorf("distributeddata: %w", errors.Join(err, l.unobserve()))
	}
	name := "replicator " + cfg.Name
	lifecycle.OnStart(system, name, l.up)
	lifecycle.OnCheck(system, name, func() error { return errors.Join(l.check(), l.r.free()) })
	r.begin(l)
	l.members.WhenUp(func(membership.Member) { l.spawn() })
	return nil
}

func (l *binding) spawn() {
	l.spawning.Do(func() {
		a := newReplica(l)
		// also after a restart
		props := actor.PropsFromProducer(func() actor.Actor { return a },
			early.MailboxAt(&a.mailbox),
			actor.WithDispatcher(newPinnedDispatcher(l.r.number, l.ended.Done())),
			actor.WithGuardian(actor.NewExponentialBackoffStrategy(10*time.Second,
				100*time.Millisecond)))
		if _, err := l.system.Root.SpawnNamed(props, actorName(l.cfg.Name)); err != nil {
			l.failure = fmt.Errorf("distributeddata: replicator %q: %w", l.cfg.Name, err)
			l.system.Logger().Error("replicator not started", "name", l.cfg.Name, "error", err)
			l.finish(nil)
		}
	})
}

// throughput is the number of messages that the actor handles in a row, which is Proto.Actor's
// default.
const throughput = 300

// run opens the way for messages and calls to the actor, which has started.
func (l *binding) run(pid *actor.PID) {
	l.pid = pid
	if l.state.CompareAndSwap(bound, running) {
		l.r.ingress.open(l)
		close(l.running)
		l.r.signal()
	}
}

// finish ends the incarnation. what is the state that the actor held, nil if it never ran.
func (l *binding) finish(what held) {
	l.state.Store(over)
	l.r.ingress.shut(l)
	l.r.finished(l, what)
	l.end()
}

// up waits until the actor runs.
func (l *binding) up(ctx context.Context) error {
	select {
	case <-l.running:
		return nil
	case <-l.ended.Done():
		return errors.Join(ErrClosed, l.failure)
	case <-ctx.Done():
		return fmt.Errorf("distributeddata: replicator %q: this member is not listed in its own view yet: %w",
			l.cfg.Name, context.Cause(ctx))
	}
}

// check returns nil if the replica counts in quorums, or need not.
func (l *binding) check() error {
	if p := l.published.Load(); p != nil && p.stopped != nil {
		return p.stopped
	}
	if l.cfg.MinMembers == 0 {
		return nil // it counts in no quorum
	}
	if p := l.published.Load(); p != nil && p.allReady() && p.stored() {
		return nil
	}
	return l.waitsFor()
}

// waitsFor returns an error that says why the replica is not ready yet.
func (l *binding) waitsFor() error {
	p := l.published.Load()
	if p == nil {
		return errors.New("this member is not listed in its own view yet")
	}
	if p.stopped != nil {
		return p.stopped
	}
	h := &p.domainView
	// The durable domain is the one that is not ready.
	if p.durable != nil && (h.ready || p.durableKeys.all() || p.unloaded != nil) {
		h = p.durable
	}
	why := l.lacks(p, h)
	if h == p.durable && len(p.others) > 0 {
		why = fmt.Errorf("%w; these members list other durable keys: %s", why,
			membership.Names(p.others))
	}
	if h == p.durable {
		return fmt.Errorf("durable keys: %w", why)
	}
	return why
}

// lacks returns an error that says why a domain is not ready yet.
func (l *binding) lacks(p *replicatorView, h *domainView) error {
	want := l.cfg.MinMembers
	if h == p.durable && p.unloaded != nil {
		return p.unloaded
	}
	switch h.disk.Phase {
	case core.NoDisk, core.DiskWorking:
	case core.DiskLoading:
		return fmt.Errorf("the rows of the disk are being read: %d so far", l.r.disk.rows.Load())
	default:
		return fmt.Errorf("the disk is %s: %w", h.disk.Phase, h.disk.Err)
	}
	switch {
	case h.quorum.DuplicateName:
		return fmt.Errorf("another process runs under the name %q", h.quorum.Own)
	case h.quorum.Leaving:
		return fmt.Errorf("member %q is being removed from the quorum and will rejoin as a new member", h.quorum.Own)
	case h.quorum.Trouble != "":
		return fmt.Errorf("the membership record cannot be used: %s", h.quorum.Trouble)
	case p.members < want:
		return errors.New(seen(p.members, want, "missing",
			lost(h.quorum.Missing(), l.members.Lost())))
	}
	var silent []string
	for _, m := range h.silent {
		silent = append(silent, p.address(m))
	}
	text := seen(p.members, want, "not refilled yet by", silent)
	if missing := h.quorum.Missing(); len(missing) > 0 {
		text += fmt.Sprintf("; counted and missing %s", membership.Names(missing))
	}
	return errors.New(text)
}

// close ends the incarnation as Replicator.Close describes. Later calls wait for the first one and
// return its error.
func (l *binding) close(ctx context.Context) error {
	ctx, cancel := l.r.bounded(ctx)
	defer cancel()
	l.spawning.Do(func() { l.finish(nil) }) // the actor was never spawned
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.closing.Do(func() {
			err := errExit // in case the provider of the metrics does not return
			defer func() { l.err = errors.Join(l.err, err) }()
			l.err = l.leave(ctx)
			err = guarded(l.unobserve)
		})
	}()
	late := ctx.Done()
	var margin <-chan time.Time
	for {
		select {
		case <-done:
			return l.err
		case <-late: // stopping has no time limit of its own
			late, margin = nil, time.After(2*answerMargin)
		case <-margin:
			return fmt.Errorf("distributeddata: closing: %w", l.r.busy(context.Cause(ctx)))
		}
	}
}

// leave waits until the updates made here are safe. It then stops the actor, after all messages
// sent to it before.
func (l *binding) leave(ctx context.Context) (err error) {
	select {
	case <-l.running:
	case <-l.ended.Done():
		return nil
	}
	if l.over() {
		return nil
	}
	res, err := l.ask(ctx, &drain{})
	switch d, ok := res.(*drained); {
	case err != nil:
		err = fmt.Errorf("distributeddata: closing: %w", err)
	case ok:
		err = d.err
	}
	l.state.Store(over)
	l.r.ingress.shut(l)
	l.system.Root.Poison(l.pid) // queued behind all earlier messages
	<-l.ended.Done()
	if l.r.disk != nil {
		err = errors.Join(err, l.r.disk.settled(ctx))
	}
	return err
}

// over reports whether the actor has stopped.
func (l *binding) over() bool { return l.ended.Err() != nil }
