package distributeddata

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/lifecycle"
)

// Replicator is this member's replica of the data. Its methods, and those of Key that take it, are
// safe for concurrent use. Use New to create one: operations on another one return ErrInvalid.
//
// Where a process runs one incarnation of its member after another (node.Run), one Replicator
// serves all of them: New in a later incarnation returns the same Replicator, which continues with
// the data it held, so a handle may be kept. While the member rejoins, Get at Local, Keys and
// Snapshot show the last state. Every other operation waits for the next incarnation until its
// context is done, and then fails with node.ErrRejoining.
type Replicator struct {
	name        string
	pid         *actor.PID // PID of the ingress, the same in every incarnation
	ingress     ingress
	durableKeys *durableKeys                   // the same in every incarnation
	disk        *disk                          // stores their rows; nil: no key is durable
	present     atomic.Pointer[binding]        // nil between two incarnations
	last        atomic.Pointer[replicatorView] // the state of the incarnation that ended last
	traffic     traffic
	panics      atomic.Uint64
	reach       func(place string) // test hook, called in the middle of steps
	number      number             // identifies its actor in call stacks
	userCall    atomic.Pointer[string]
	block       atomic.Pointer[blockage] // the last one seen
	faults      faults
	near        nearness
	uses        uses
	expired     atomic.Uint64 // number of entries that this member has deleted because they expired
	touches     atomic.Uint64 // number of stamps that were not part of another update
	loops       loops         // over changes
	flushed     news          // wakes waiters for FlushChanges
	shut        atomic.Bool   // closed for reads as well

	mu struct {
		sync.Mutex
		present      *binding
		cfg          Config        // of the present incarnation, or of the last one
		log          *slog.Logger  // of the same incarnation
		changed      chan struct{} // closed when any of these fields has changed
		incarnations int           // number of incarnations so far
		again        bool          // another incarnation may follow
		closed       error         // error for callers that would wait; nil: they may wait
		held         []held        // left by ended incarnations, for the next one
		successor    *actor.PID    // the actor of the present incarnation that took held
	}
}

// New returns the replicator of a member. Call it before the member starts, and before any other
// component of the incarnation is created: the replicator then learns of every other member, and
// starts its actor as soon as this member has joined. Until then operations return ErrClosed.
//
// In a later incarnation of the member in the same process (node.Run), New returns the Replicator
// of the previous incarnations, bound to the new system, and cfg replaces the previous
// configuration. A different Name is a different replicator.
//
// New returns ErrInvalid for a bad configuration, for a second call with the same Name on one
// system, and for a later incarnation with a different Durable. It returns another error if the
// member is stopping.
func New(system *actor.ActorSystem, cfg Config) (*Replicator, error) {
	err := cfg.validate()
	if system == nil {
		err = errors.Join(fmt.Errorf("%w: no actor system", ErrInvalid), err)
	}
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults().within(lifecycle.MinMembers(system))
	chosen, err := newDurableKeys(cfg.Durable)
	if err != nil {
		return nil, err
	}
	fresh := false
	r, _, err := lifecycle.Handle(system, "replicator "+cfg.Name, func() (*Replicator, error) {
		fresh = true
		again := lifecycle.IncarnationsOf(system) != nil
		return newReplicator(cfg, chosen, again, system.Logger()), nil
	})
	if err != nil {
		return nil, fmt.Errorf("distributeddata: %w", err)
	}
	if r.durableKeys.sum() != chosen.sum() {
		return nil, fmt.Errorf(
			"%w: Durable is %q, which is not what the replicator %q of this process began with",
			ErrInvalid, cfg.Durable, cfg.Name)
	}
	if incarnations := lifecycle.IncarnationsOf(system); fresh && incarnations != nil {
		incarnations.OnLast(r.isLast)
		incarnations.OnEnd(r.noMore)
	}
	if err := r.bind(system, cfg); err != nil {
		return nil, err
	}
	return r, nil
}

func newReplicator(cfg Config, chosen *durableKeys, again bool, log *slog.Logger) *Replicator {
	r := &Replicator{name: cfg.Name, durableKeys: chosen, number: number(numbers.Add(1)),
		pid: actor.NewPID("nonhost", "concord-ddata-"+cfg.Name)}
	if chosen != nil {
		r.disk = newDisk(cfg.Store, log)
	}
	r.mu.changed, r.mu.again, r.mu.cfg = make(chan struct{}), again, cfg
	return r
}

// actorName returns the name that the replicator's actor has at every member.
func actorName(replicator string) string { return "concord-replicator-" + replicator }

// PID returns the address to which actors of this member send Get, Update, Delete, Transaction and
// Subscribe. It is the same in every incarnation, never nil, and always safe to send to. Up to 1024
// messages that arrive before the replica runs are queued and handled in order. While the member
// rejoins, an update without a sender waits for the next incarnation, and a request with a sender
// is answered with node.ErrRejoining. A request that cannot be carried out is answered with its
// error; if it has no sender, the error is logged and the message goes to the dead letters.
func (r *Replicator) PID() *actor.PID { return r.pid }

// Ready waits until the replica has been refilled: enough other replicas have answered it that it
// holds every earlier majority write. Until then it serves local reads and writes, but does not
// count in quorums. A replica stays ready for the rest of its incarnation; while the member
// rejoins, Ready waits for the next one.
//
// Errors: the cause of ctx, with the number of members seen, the number needed and the missing
// ones; ErrInvalid without Config.MinMembers; ErrClosed.
func (r *Replicator) Ready(ctx context.Context) error {
	if err := r.reentrant(); err != nil {
		return err
	}
	for {
		l, changed, err := r.look()
		if err != nil {
			return err
		}
		if l != nil && l.cfg.MinMembers == 0 {
			return errNoMinMembers
		}
		var ready <-chan struct{}
		if l != nil {
			ready = l.ready
		}
		select {
		case <-ready:
			return nil
		case <-changed:
		case <-ctx.Done():
			return r.notReady(ctx)
		}
	}
}

// notReady returns the error that says what Ready was waiting for.
func (r *Replicator) notReady(ctx context.Context) error {
	l, _, err := r.look()
	if err != nil {
		return err
	}
	why := lifecycle.ErrRejoining
	if l != nil {
		why = l.waitsFor()
	}
	return fmt.Errorf("distributeddata: replicator %q is not ready: %w: %w", r.name, why,
		context.Cause(ctx))
}

// Keys yields the names of the existing entries, in order, as of one instant.
func (r *Replicator) Keys() iter.Seq[string] {
	return func(yield func(string) bool) { r.readable().names("")(yield) }
}

// Close waits until a majority of the other replicas has everything that this one has seen, or
// until ctx is done, and then stops the replicator. If members leave one after the other, no
// acknowledged update is lost. While it waits, operations continue. A member that is to be removed
// counts in quorums until the others have recorded that it goes, any other replica in none from the
// start of Close. Operations that are pending at the end return ErrClosed. node.Shutdown calls
// Close.
//
// If too few replicas can be reached, Close takes until ctx is done, or Config.OperationTimeout if
// ctx has no deadline. If this member was removed from its cluster, Close returns at once, since
// the other members do not listen to it. Afterwards every operation returns ErrClosed, including
// reads at Local. Values and Snapshots read before remain valid.
//
// Close returns the error of ctx or ErrQuorum if the handover was not confirmed in time: the last
// updates may be lost with this member, unless the process continues in another incarnation.
// ErrInvalid means that nothing was done.
func (r *Replicator) Close(ctx context.Context) error {
	if err := r.reentrant(); err != nil {
		return err
	}
	r.mu.Lock()
	l := r.mu.present
	r.mu.closed = ErrClosed
	r.signalLocked()
	r.mu.Unlock()
	if l == nil {
		r.shut.Store(true)
		return nil
	}
	defer r.ingress.close(l)
	defer r.shut.Store(true)
	return l.close(ctx)
}

// tell sends a message that is not answered.
func (r *Replicator) tell(m request) { r.ingress.SendUserMessage(r.pid, m) }

func (r *Replicator) options(opts []Option) options {
	if len(opts) == 0 {
		return options{} // a separate path, so that the value stays on the stack
	}
	return applied(opts)
}

func applied(opts []Option) (o options) {
	for _, opt := range opts {
		opt.apply(&o)
	}
	return o
}

// result is implemented by the responses.
type result[T any] interface{ Result() (T, error) }

// call sends a request to the actor and waits for its response. A request that an incarnation did
// not begin is retried in the next one.
func call[R result[T], T any](ctx context.Context, r *Replicator, empty T, m request) (T, error) {
	if err := r.reentrant(); err != nil {
		return empty, err
	}
	ctx, span := r.span(ctx, m)
	if span == nil {
		return callOn[R](ctx, r, empty, m)
	}
	v, err := callOn[R](ctx, r, empty, m)
	endSpan(span, err)
	return v, err
}

func callOn[R result[T], T any](ctx context.Context, r *Replicator, empty T, m request) (T, error) {
	for {
		l, err := r.living(ctx)
		if err != nil {
			return empty, err
		}
		res, err := l.ask(ctx, m)
		if err == nil {
			var v T
			if v, err = res.(R).Result(); !notTaken(err) { //nolint:forcetypeassert // only the actor can answer
				return v, err
			}
		}
		if !notTaken(err) {
			return empty, err
		}
	}
}

// notTaken reports whether the request may be retried in the next incarnation. It calls no method
// of err, which may be the application's.
func notTaken(err error) bool { return err == errNotTaken } //nolint:errorlint // never wrapped
