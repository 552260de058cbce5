package distributeddata

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/ask"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

// Replicator is this member's replica of the data. Its methods, and those of Key that take it, may be
// called from any goroutine.
type Replicator struct {
	system    *actor.ActorSystem
	cfg       Config
	members   *membership.Service
	published atomic.Pointer[published]
	traffic   traffic
	lastStart uint64       // of the actor: orders its incarnations
	unobserve func() error // ends the metrics

	running chan struct{} // closed when the actor runs
	ready   chan struct{} // closed when the replica has become ready for the first time
	stopped chan struct{} // closed when the actor has stopped
	started sync.Once
	closing sync.Once
	failure error // why the actor could not be spawned; before stopped is closed
}

// published is the state as readers see it: of one instant, and immutable.
type published struct {
	pid     *actor.PID
	replica causal.Replica
	keys    core.Keys
	seen    causal.Vector
	ready   bool
	members int
	stats   core.Stats
	lags    []core.Lag
	view    *membership.View // nil before the first
}

// address returns where a member is, for people.
func (p *published) address(id string) string {
	for _, m := range p.view.Members {
		if m.ID == id {
			return m.Address
		}
	}
	return id
}

// New prepares the replicator of a member. Call it before the member starts: it then hears of every
// other member, and starts its actor as soon as this one is in. Until then operations return ErrClosed.
// The error is ErrInvalid, or says that the member is stopping.
func New(system *actor.ActorSystem, cfg Config) (*Replicator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Replicator{
		system: system, cfg: cfg.withDefaults(), members: membership.Attach(system),
		running: make(chan struct{}), ready: make(chan struct{}), stopped: make(chan struct{}),
	}
	name := "replicator " + r.cfg.Name
	if err := r.observe(); err != nil {
		return nil, fmt.Errorf("distributeddata: metrics: %w", err)
	}
	if _, err := lifecycle.OnStop(system, lifecycle.Replicator, name, r.Close); err != nil {
		return nil, fmt.Errorf("distributeddata: %w", errors.Join(err, r.unobserve()))
	}
	lifecycle.OnStart(system, name, r.up)
	r.members.WhenUp(func(membership.Member) { r.spawn() })
	return r, nil
}

// actorName is the name of the actor at every member.
func (r *Replicator) actorName() string { return "concord-replicator-" + r.cfg.Name }

func (r *Replicator) spawn() {
	r.started.Do(func() {
		props := actor.PropsFromProducer(func() actor.Actor { return newReplica(r) },
			actor.WithGuardian(actor.NewExponentialBackoffStrategy(10*time.Second, 100*time.Millisecond)))
		if _, err := r.system.Root.SpawnNamed(props, r.actorName()); err != nil {
			r.failure = fmt.Errorf("distributeddata: replicator %q: %w", r.cfg.Name, err)
			r.system.Logger().Error("replicator not started", "name", r.cfg.Name, "error", err)
			close(r.stopped)
		}
	})
}

// PID is where actors of this member send Get, Update, Delete and Subscribe. It is nil before the
// member is in the cluster.
func (r *Replicator) PID() *actor.PID {
	if p := r.published.Load(); p != nil {
		return p.pid
	}
	return nil
}

// up waits until the actor runs.
func (r *Replicator) up(ctx context.Context) error { return r.await(ctx, r.running) }

// Ready waits until the replica holds what the cluster held when it started: it has been refilled by so
// many other replicas that every earlier majority write is here. Until then it serves local reads and
// writes, but does not count in quorums. A replica is ready for good, unless its actor has to be
// restarted.
//
// Errors: the cause of ctx, ErrClosed.
func (r *Replicator) Ready(ctx context.Context) error { return r.await(ctx, r.ready) }

func (r *Replicator) await(ctx context.Context, what <-chan struct{}) error {
	select {
	case <-what:
		return nil
	case <-r.stopped:
		return errors.Join(ErrClosed, r.failure)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Keys yields the names of the entries that are there, in order, as of one instant.
func (r *Replicator) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		p := r.published.Load()
		if p == nil {
			return
		}
		for key, s := range p.keys.All() {
			if !s.Empty() && !buried(s.Store) && !yield(key) {
				return
			}
		}
	}
}

// Close waits until at least one other replica, if there is one, has all updates made here, or ctx
// ends, and stops the replicator. Operations under way end with ErrClosed. node.Shutdown calls it.
// Later calls wait for the first.
//
// The error is that of ctx, or ErrQuorum: nobody confirmed in time, so the last updates may be lost
// with this member.
func (r *Replicator) Close(ctx context.Context) (err error) {
	r.started.Do(func() { close(r.stopped) }) // never spawned
	r.closing.Do(func() {
		defer func() { err = errors.Join(err, r.unobserve()) }()
		if pid := r.PID(); pid != nil {
			err = r.close(ctx, pid)
		}
	})
	select {
	case <-r.stopped:
		return err
	case <-ctx.Done():
	}
	select { // stopping takes no time of its own
	case <-r.stopped:
		return err
	case <-time.After(answerMargin):
		return errors.Join(err, context.Cause(ctx))
	}
}

func (r *Replicator) close(ctx context.Context, pid *actor.PID) error {
	defer r.system.Root.Stop(pid)
	res, err := r.ask(ctx, pid, &drain{timeout: r.timeout(ctx)})
	if err != nil {
		return fmt.Errorf("distributeddata: closing: %w", err)
	}
	return res.(*drained).err
}

func (r *Replicator) tell(m request) {
	if pid := r.PID(); pid != nil {
		r.system.Root.Send(pid, m)
	}
}

func (r *Replicator) options(opts []Option) (o options) {
	for _, opt := range opts {
		opt.apply(&o)
	}
	return o
}

// timeout is the time an operation has under ctx.
func (r *Replicator) timeout(ctx context.Context) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		return max(time.Until(at), time.Nanosecond)
	}
	return r.cfg.OperationTimeout
}

// result is implemented by the responses.
type result[T any] interface{ Result() (T, error) }

// call sends a request to the actor and waits for its response.
func call[R result[T], T any](ctx context.Context, r *Replicator, empty T, m request) (T, error) {
	pid := r.PID()
	if pid == nil {
		return empty, ErrClosed
	}
	res, err := r.ask(ctx, pid, m)
	if err != nil {
		return empty, err
	}
	return res.(R).Result()
}

// ask sends a message to the actor and waits for its answer. The actor answers at the deadline of ctx,
// saying how far it came, so it is given a moment longer.
func (r *Replicator) ask(ctx context.Context, pid *actor.PID, m any) (any, error) {
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
	res, err := ask.Request(wait, r.system, pid, m)
	switch {
	case err == nil:
		return res, nil
	case errors.Is(err, ask.ErrDeadLetter):
		return nil, ErrClosed
	}
	return nil, fmt.Errorf("%w: %w", ErrUnknown, context.Cause(ctx))
}

// answerMargin is how long a call waits past its deadline for the actor to say how far it came.
const answerMargin = 100 * time.Millisecond
