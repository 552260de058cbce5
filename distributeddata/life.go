package distributeddata

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

// life is what a Replicator has of one life of its member. Nothing that outlives it may point to it, since it keeps
// an actor system alive.
//
//	bound ──the member is up──▶ running ──close──▶ over
//	  └────────────────close────────────────────────▲
type life struct {
	r         *Replicator
	system    *actor.ActorSystem
	cfg       Config
	members   *membership.Service
	pid       *actor.PID // of the actor, once it runs
	published atomic.Pointer[published]
	state     atomic.Int32
	running   chan struct{}   // closed when the actor runs
	ready     chan struct{}   // closed when the replica has become ready for the first time
	ended     context.Context // ends when the actor has stopped
	end       context.CancelFunc
	spawning  sync.Once
	closing   sync.Once
	unobserve func() error // ends the metrics
	failure   error        // why the actor could not be spawned; before ended
	err       error        // of the closing; before its once is done
}

// States of a life.
const (
	bound int32 = iota
	running
	over
)

// bind begins a life of the replicator on system.
func (r *Replicator) bind(system *actor.ActorSystem, cfg Config) error {
	l := &life{
		r: r, system: system, cfg: cfg, members: membership.Attach(system),
		running: make(chan struct{}), ready: make(chan struct{}),
	}
	l.ended, l.end = context.WithCancel(context.Background())
	if _, ok := system.ProcessRegistry.Add(&r.door, r.pid.Id); !ok {
		return fmt.Errorf("%w: Name %q: this actor system has a replicator of that name already", ErrInvalid, cfg.Name)
	}
	undo := func() { system.ProcessRegistry.Remove(r.pid) }
	var err error
	if l.unobserve, err = r.observe(cfg.Meters); err != nil {
		undo()
		return fmt.Errorf("distributeddata: metrics: %w", err)
	}
	name := "replicator " + cfg.Name
	if _, err := lifecycle.OnStop(system, lifecycle.Replicator, name, l.close); err != nil {
		undo()
		return fmt.Errorf("distributeddata: %w", errors.Join(err, l.unobserve()))
	}
	lifecycle.OnStart(system, name, l.up)
	lifecycle.OnCheck(system, name, l.check)
	r.begin(l)
	l.members.WhenUp(func(membership.Member) { l.spawn() })
	return nil
}

func (l *life) spawn() {
	l.spawning.Do(func() {
		a := newReplica(l)
		props := actor.PropsFromProducer(func() actor.Actor { return a }, // also after a restart
			actor.WithDispatcher(newSteadfast(l.r.number, l.ended.Done())),
			actor.WithGuardian(actor.NewExponentialBackoffStrategy(10*time.Second, 100*time.Millisecond)))
		if _, err := l.system.Root.SpawnNamed(props, actorName(l.cfg.Name)); err != nil {
			l.failure = fmt.Errorf("distributeddata: replicator %q: %w", l.cfg.Name, err)
			l.system.Logger().Error("replicator not started", "name", l.cfg.Name, "error", err)
			l.finish(nil)
		}
	})
}

// throughput is how many messages the actor handles in a row, as with Proto.Actor's default.
const throughput = 300

// run lets messages and calls through to the actor, which has started.
func (l *life) run(pid *actor.PID) {
	l.pid = pid
	if l.state.CompareAndSwap(bound, running) {
		l.r.door.open(l)
		close(l.running)
		l.r.signal()
	}
}

// finish ends the life; held is what the actor held, nil if it never ran.
func (l *life) finish(held *core.Core) {
	l.state.Store(over)
	l.r.door.shut(l)
	l.r.finished(l, held)
	l.end()
}

// up waits until the actor runs.
func (l *life) up(ctx context.Context) error {
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

// check returns nil while the replica counts in quorums, or is not to.
func (l *life) check() error {
	if l.cfg.MinMembers == 0 {
		return nil // it is to count in none
	}
	if p := l.published.Load(); p != nil && p.ready {
		return nil
	}
	return l.waitsFor()
}

// waitsFor says why the replica is not ready yet.
func (l *life) waitsFor() error {
	p, want := l.published.Load(), l.cfg.MinMembers
	switch {
	case p == nil:
		return errors.New("this member is not listed in its own view yet")
	case p.roll.Usurped:
		return fmt.Errorf("another process runs under the name %q", p.roll.Own)
	case p.roll.Leaving:
		return fmt.Errorf("the others have begun to forget this member, %q, which enters anew after that", p.roll.Own)
	case p.roll.Trouble != "":
		return fmt.Errorf("the record of the membership cannot be used: %s", p.roll.Trouble)
	case p.members < want:
		return errors.New(seen(p.members, want, "missing", lost(p.roll.Missing(), l.members.Lost())))
	}
	var silent []string
	for _, m := range p.silent {
		silent = append(silent, p.address(m))
	}
	text := seen(p.members, want, "not refilled yet by", silent)
	if missing := p.roll.Missing(); len(missing) > 0 {
		text += fmt.Sprintf("; counted and missing %s", strings.Join(missing, ", "))
	}
	return errors.New(text)
}

// close ends the life as Replicator.Close says. Later calls wait for the first and return its error.
func (l *life) close(ctx context.Context) error {
	ctx, cancel := l.r.bounded(ctx)
	defer cancel()
	l.spawning.Do(func() { l.finish(nil) }) // never spawned
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.closing.Do(func() {
			err := errExit // unless the provider of the metrics returns
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
		case <-late: // stopping takes no time of its own
			late, margin = nil, time.After(2*answerMargin)
		case <-margin:
			return fmt.Errorf("distributeddata: closing: %w", l.r.busy(context.Cause(ctx)))
		}
	}
}

// leave waits until the updates made here are safe, and stops the actor after all that was sent to it before.
func (l *life) leave(ctx context.Context) (err error) {
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
	l.r.door.shut(l)
	l.system.Root.Poison(l.pid) // behind all that was sent
	<-l.ended.Done()
	return err
}

// timeout is the time an operation has under ctx.
func (l *life) timeout(ctx context.Context) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return max(time.Until(at), time.Nanosecond)
	}
	return l.cfg.OperationTimeout
}

// posted is a request of a call. Either the actor takes it or the caller withdraws it.
type posted struct {
	request
	timeout time.Duration
	taken   atomic.Bool
}

// take reports whether it was the first call.
func (p *posted) take() bool { return p.taken.CompareAndSwap(false, true) }

// errNotTaken says that a life ended before its actor took a request: nothing was done.
var errNotTaken = fmt.Errorf("distributeddata: nothing was done: %w", ErrBetweenLives)

// ask sends a request to the actor and waits for its answer. The actor answers at the deadline of ctx,
// saying how far it came, so it is given a moment longer.
func (l *life) ask(ctx context.Context, m request) (any, error) {
	wait, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	unhook := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			time.AfterFunc(answerMargin, stop)
			return
		}
		stop()
	})
	defer unhook()
	defer context.AfterFunc(l.ended, stop)()
	if _, ok := ctx.Deadline(); !ok {
		defer time.AfterFunc(l.cfg.OperationTimeout+answerMargin, stop).Stop()
	}
	p := &posted{request: m, timeout: l.timeout(ctx)}
	res, err := ask.Request(wait, l.system, l.pid, p)
	switch {
	case err == nil:
		return res, nil
	case !l.over():
		p.take() // if it has not been taken it never will
		return nil, fmt.Errorf("%w: %w", ErrUnknown, l.r.busy(cmp.Or(context.Cause(ctx), context.DeadlineExceeded)))
	case p.take():
		return nil, errNotTaken
	}
	return nil, fmt.Errorf("%w: %w", ErrUnknown, ErrClosed)
}

// over reports whether the actor has stopped.
func (l *life) over() bool { return l.ended.Err() != nil }

// answerMargin is how long a call waits past its deadline for the actor to say how far it came.
const answerMargin = 100 * time.Millisecond
