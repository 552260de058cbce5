package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Run is the body of a member's main function. It opens the lease store, creates the actor system,
// the provider and the cluster, calls register to create the components, starts the member, runs
// the work passed to Node.Go, and serves until ctx ends or the process receives SIGTERM or SIGINT.
// Then it stops in this order: work and other ingress, shards, singletons, leases, replicators, the
// session, the member, remoting. A second signal ends the process at once, with status 128 plus the
// number of the signal.
//
//	func main() { node.Main(cfg, register) }
//
// When a pause or a partition has split a member off from its cluster, the member ends its
// incarnation and begins another one in the same process: Run calls register again, with a new
// actor system. A component created under the same name as before is the same component, so handles
// kept by the application continue to work; calls on them while the member rejoins wait, or fail
// with ErrRejoining. Replicated data is carried over. Instances of singletons and user actors are
// not: they are stopped. See OnSplit for alternatives, and docs/operations.md.
//
// A process runs one member: Run fails with ErrInvalid while another call of Run has not returned.
//
// register and the functions of cfg must return within StartTimeout. If register returns an error,
// panics or calls runtime.Goexit, Run returns.
//
// The error is nil after an orderly stop. It matches ErrInvalid if nothing was done; ErrStart if
// the first incarnation did not start or get ready (a later incarnation is retried forever);
// ErrStop if something did not stop in time; ErrSplit as described at OnSplit. Otherwise it is the
// error of register, of the Store function or of the work passed to Node.Go. ExitCode maps errors
// to exit statuses.
func Run(ctx context.Context, cfg RunConfig, register func(*Node) error) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	if register == nil {
		return fmt.Errorf("%w: no register function", ErrInvalid)
	}
	if !running.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: another member runs in this process: the members of a cluster are "+
			"processes; for tests in one process see package testkit", ErrInvalid)
	}
	defer running.Store(false)
	cfg = cfg.withDefaults()
	cfg.Health.logsTo(cfg.Logger)
	if !cfg.NoSignals {
		var stop func()
		ctx, stop = signals(ctx)
		defer stop()
	}
	r := &runner{cfg: cfg, register: register, incarnations: lifecycle.NewIncarnations(),
		pace: newPace(cfg.RejoinsPerHour)}
	r.incarnations.MinMembers = cfg.MinMembers
	defer r.incarnations.End()
	unobserve, err := r.observe()
	if err != nil {
		return fmt.Errorf("node: metrics: %w", err)
	}
	defer func() { _ = unobserve() }() // the provider may be gone by now
	if err := r.open(ctx); err != nil {
		return err
	}
	defer cfg.Health.set(stateStopped, nil, nil)
	err = r.run(ctx)
	return errors.Join(err, r.close(err))
}

// running is set during a call of Run: the guard knows the view of one member, and two remoting
// servers in one process race inside Proto.Actor.
var running atomic.Bool

// runner is one call of Run.
type runner struct {
	cfg          RunConfig
	register     func(*Node) error
	incarnations *lifecycle.Incarnations
	store        coordination.Store
	session      *coordination.Session
	pace         *pace
	blocking     contain.Blocking // functions of the application that start a member
	incarnation  int
	ended        time.Time // of the last incarnation; zero: it is the first
	counted      int       // members in the last incarnation that knew how many; 0: not known
}

// open opens the store and the session.
func (r *runner) open(ctx context.Context) error {
	if r.cfg.Store == nil {
		return nil
	}
	err := r.within(ctx, "RunConfig.Store", func(context.Context) (err error) {
		r.store, err = r.cfg.Store()
		return err
	})
	if err != nil {
		return fmt.Errorf("node: lease store: %w", err)
	}
	if r.session, err = coordination.Open(r.store, r.cfg.session()); err != nil {
		return errors.Join(fmt.Errorf("node: session: %w", err), r.closeStore())
	}
	return nil
}

// close closes the session, unless the last incarnation has closed it, and the store. It does not
// return what stopped says already.
func (r *runner) close(stopped error) error {
	if r.session == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.StopTimeout)
	defer cancel()
	if err := r.session.Close(ctx); err != nil && !errors.Is(stopped, err) {
		return errors.Join(fmt.Errorf("%w: session: %w", ErrStop, err), r.closeStore())
	}
	return r.closeStore()
}

func (r *runner) closeStore() error {
	if c, ok := r.store.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// run runs one incarnation after the other.
func (r *runner) run(ctx context.Context) error {
	for r.incarnation = 1; ; r.incarnation++ {
		began := time.Now()
		again, err := r.live(ctx)
		if !again {
			return err
		}
		wait := r.pace.next(time.Now(), time.Since(began), err == nil)
		about := []any{slog.Int("incarnation", r.incarnation+1), slog.Duration("pause", wait)}
		if err != nil { // of the stop of this incarnation, or of its start
			about = append(about, slog.Any("error", err))
		}
		level := slog.LevelInfo // the end of the incarnation has been logged
		if err != nil {
			level = slog.LevelWarn
		}
		r.cfg.Logger.Log(ctx, level, "rejoining the cluster", about...)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// pace decides how long the process waits while the member rejoins.
type pace struct {
	perHour int
	ended   []time.Time // when the last perHour incarnations ended
	pause   time.Duration
}

// The pause after failed incarnations doubles from shortestPause to longestPause. It is reset after
// an incarnation of at least lasting.
const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
	lasting       = time.Minute
)

func newPace(perHour int) *pace { return &pace{perHour: perHour, pause: shortestPause} }

// lately returns how many incarnations ended within the last hour.
func (p *pace) lately(now time.Time) (n int) {
	for _, at := range p.ended {
		if now.Sub(at) < time.Hour {
			n++
		}
	}
	return n
}

// next returns the pause before the next incarnation. There is none after an incarnation that gave
// way, because other members wait for this one, unless perHour incarnations have already ended
// within the last hour.
func (p *pace) next(now time.Time, lasted time.Duration, orderly bool) time.Duration {
	var wait time.Duration
	if lasted >= lasting {
		p.pause = shortestPause
	}
	if !orderly {
		wait = p.pause/2 + rand.N(p.pause/2+1)
		p.pause = min(2*p.pause, longestPause)
	}
	if len(p.ended) == p.perHour {
		wait = max(wait, p.ended[0].Add(time.Hour).Sub(now))
		p.ended = p.ended[1:]
	}
	p.ended = append(p.ended, now)
	return wait
}
