package distributeddata

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/concord-go/concord/internal/lifecycle"
)

// Replicator is this member's replica of the data. Its methods, and those of Key that take it, may be
// called from any goroutine.
//
// Where a process runs one life of its member after another (node.Run), the Replicator outlives them: New in a later
// life returns the same one, which goes on with what it held, so a handle may be kept. Between two lives Get at Local,
// Keys and Snapshot show what was there last. Everything else waits for the next life, as long as its context lets
// it, and then fails with ErrBetweenLives.
type Replicator struct {
	name    string
	pid     *actor.PID // of the door, the same in every life
	door    door
	choice  *choice                   // of durable keys, the same in every life
	disk    *disk                     // of their rows; nil: none is durable
	present atomic.Pointer[life]      // nil between two lives
	last    atomic.Pointer[published] // of the life that ended last
	traffic traffic
	panics  atomic.Uint64
	reach   func(place string) // of a test, in the middle of steps
	number  number             // of its actor, in call stacks
	hosts   atomic.Pointer[string]
	faults  faults
	near    nearness
	uses    uses
	expired atomic.Uint64 // entries that this member has deleted for their time
	touches atomic.Uint64 // stamps that were no part of another update
	news    news          // of published states
	flushed news          // of FlushChanges
	shut    atomic.Bool   // closed, for reads

	mu struct {
		sync.Mutex
		present *life
		cfg     Config        // of the present life, or the last
		log     *slog.Logger  // of the same
		changed chan struct{} // closed when any of this has changed
		lives   int           // so far
		again   bool          // there may be another one
		closed  error         // nobody may wait for one; nil: but they may
		held    []held        // by lives that have ended, for the next
		heir    *actor.PID    // of the actor that took it, in the present life
	}
}

// New prepares the replicator of a member. Call it before the member starts, and before other components of the
// life: it then hears of every other member, and starts its actor as soon as this one is in. Until then
// operations return ErrClosed.
//
// In a later life of the same process (node.Run) it returns the Replicator of the former ones, bound to the new
// system. The new cfg counts; another Name is another replicator.
//
// The error is ErrInvalid, also for a second call with one Name on one system and for a later life with another
// Durable, or says that the member is stopping.
func New(system *actor.ActorSystem, cfg Config) (*Replicator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	chosen, err := newChoice(cfg.Durable)
	if err != nil {
		return nil, err
	}
	fresh := false
	r, _, err := lifecycle.Handle(system, "replicator "+cfg.Name, func() (*Replicator, error) {
		fresh = true
		return newReplicator(cfg, chosen, lifecycle.LivesOf(system) != nil, system.Logger()), nil
	})
	if err != nil {
		return nil, fmt.Errorf("distributeddata: %w", err)
	}
	if r.choice.sum() != chosen.sum() {
		return nil, fmt.Errorf("%w: Durable is %q, which is not what the replicator %q of this process began with",
			ErrInvalid, cfg.Durable, cfg.Name)
	}
	if lives := lifecycle.LivesOf(system); fresh && lives != nil {
		lives.OnLast(r.isLast)
		lives.OnEnd(r.noMore)
	}
	if err := r.bind(system, cfg); err != nil {
		return nil, err
	}
	return r, nil
}

func newReplicator(cfg Config, chosen *choice, again bool, log *slog.Logger) *Replicator {
	r := &Replicator{name: cfg.Name, choice: chosen, number: number(numbers.Add(1)), pid: actor.NewPID("nonhost", "concord-ddata-"+cfg.Name)}
	if chosen != nil {
		r.disk = newDisk(cfg.Store, log)
	}
	r.mu.changed, r.mu.again, r.mu.cfg = make(chan struct{}), again, cfg
	return r
}

// actorName is the name of the actor at every member.
func actorName(replicator string) string { return "concord-replicator-" + replicator }

// PID is where actors of this member send Get, Update, Delete, Transaction and Subscribe. It is the same in every
// life, never nil, and always safe to send to. What comes before the replica runs waits for that, in order, up to
// 1024 messages. Between two lives an update without a sender waits for the next; a request with one is answered
// with ErrBetweenLives. Whatever cannot be carried out is answered with its error; what has no sender is
// logged, and goes to the dead letters.
func (r *Replicator) PID() *actor.PID { return r.pid }

// Ready waits until the replica holds what the cluster held when it started: it has been refilled by so
// many other replicas that every earlier majority write is here. Until then it serves local reads and
// writes, but does not count in quorums. A replica is ready for the rest of its life; between two lives Ready waits for
// the next.
//
// Errors: the cause of ctx, with how many members are seen, how many are needed and which are missing; ErrInvalid
// without Config.MinMembers; ErrClosed; ErrReentrant.
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

// notReady says what Ready has waited for.
func (r *Replicator) notReady(ctx context.Context) error {
	l, _, err := r.look()
	if err != nil {
		return err
	}
	why := ErrBetweenLives
	if l != nil {
		why = l.waitsFor()
	}
	return fmt.Errorf("distributeddata: replicator %q is not ready: %w: %w", r.name, why, context.Cause(ctx))
}

// Keys yields the names of the entries that are there, in order, as of one instant.
func (r *Replicator) Keys() iter.Seq[string] {
	return func(yield func(string) bool) { r.readable().names("")(yield) }
}

// Close waits until a majority of the other replicas has all that this one has seen, or ctx ends, and
// stops the replicator: of members that leave one after the other no acknowledged update is lost. From
// the beginning of Close this replica counts in no quorum. Operations under way end with ErrClosed.
// node.Shutdown calls it. It takes as long as ctx, or Config.OperationTimeout if that has no deadline, if too few
// replicas can be reached, and no time if this member was removed from its cluster: the others do
// not listen to it. Afterwards everything returns ErrClosed, reads at Local too; a value or a Snapshot that was read
// before stays as it is.
//
// The error is that of ctx, or ErrQuorum: nobody confirmed in time, so the last updates may be lost
// with this member. If the process goes on in another life they are not. ErrReentrant: nothing was done.
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
	defer r.door.close(l)
	defer r.shut.Store(true)
	return l.close(ctx)
}

// tell sends a message that nobody answers.
func (r *Replicator) tell(m request) { r.door.SendUserMessage(r.pid, m) }

func (r *Replicator) options(opts []Option) options {
	if len(opts) == 0 {
		return options{} // apart, so that it stays on the stack
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

// call sends a request to the actor and waits for its response. What a life did not begin is left to the next.
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

// notTaken reports whether the next life may try again. It asks err nothing, which may be the application's.
func notTaken(err error) bool { return err == errNotTaken } //nolint:errorlint // never wrapped
