package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/lifecycle"
)

// Run is what the main function of a member is made of. It opens the lease store, makes the actor system, the
// provider and the cluster, calls register to make the components, starts the member, runs what Node.Go was given,
// and serves until ctx ends or the process gets SIGTERM or SIGINT. Then it stops in order: no new work, shards,
// singletons, leases, replicators, the session, the member, remoting. A second signal ends the process at
// once, with status 128 and the number of the signal.
//
//	func main() { node.Main(cfg, register) }
//
// A member that a pause or a partition has split off from its cluster ends that life and begins another one in
// the same process: register is called again, with a new actor system. Components that are made under the name they
// had are the same as before, so handles kept by the application go on working; calls on them between two lives
// wait, or fail with ErrBetweenLives. Replicated data goes along. Instances of singletons and user actors do not:
// they are stopped. See OnSplit for other ways, and docs/operations.md.
//
// register must return within StartTimeout; its error, a panic or runtime.Goexit ends Run.
//
// The error is nil after an orderly stop. ErrInvalid: nothing was done. ErrStart and ErrNotReady: the first
// life did not start; a later one is tried again for ever. ErrStop: something did not end in time. ErrSplit: see
// OnSplit. Else it is that of register, of the Store function or of the work given to Node.Go. ExitCode maps them.
func Run(ctx context.Context, cfg RunConfig, register func(*Node) error) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if register == nil {
		return fmt.Errorf("%w: no register function", ErrInvalid)
	}
	cfg = cfg.withDefaults()
	if !cfg.NoSignals {
		var stop func()
		ctx, stop = signals(ctx)
		defer stop()
	}
	r := &runner{cfg: cfg, register: register, lives: lifecycle.NewLives(), pace: newPace(cfg.LivesPerHour)}
	defer r.lives.End()
	if err := r.open(); err != nil {
		return err
	}
	defer cfg.Health.set(stateStopped, nil, nil)
	err := r.run(ctx)
	return errors.Join(err, r.close())
}

// runner is one call of Run.
type runner struct {
	cfg      RunConfig
	register func(*Node) error
	lives    *lifecycle.Lives
	store    coordination.Store
	session  *coordination.Session
	pace     *pace
	life     int
}

// open opens the store and the session.
func (r *runner) open() error {
	if r.cfg.Store == nil {
		return nil
	}
	err := shielded(context.Background(), func(context.Context) (err error) {
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

// close ends the session, unless the last life has, and the store.
func (r *runner) close() error {
	if r.session == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.StopTimeout)
	defer cancel()
	if err := r.session.Close(ctx); err != nil {
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

// run lives one life after the other.
func (r *runner) run(ctx context.Context) error {
	for r.life = 1; ; r.life++ {
		began := time.Now()
		again, err := r.live(ctx)
		if !again {
			return err
		}
		wait := r.pace.next(time.Now(), time.Since(began), err == nil)
		r.cfg.Logger.Warn("member joins again with a new life", slog.Int("life", r.life+1),
			slog.Duration("pause", wait), slog.Any("error", err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// pace decides how long the process waits between two lives.
type pace struct {
	perHour int
	ended   []time.Time // lives, the last perHour of them
	pause   time.Duration
}

// Pauses after lives that failed: doubled from the shortest to the longest, and back after a life that lasted.
const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
	lasting       = time.Minute
)

func newPace(perHour int) *pace { return &pace{perHour: perHour, pause: shortestPause} }

// lately returns how many lives have ended within the last hour.
func (p *pace) lately(now time.Time) (n int) {
	for _, at := range p.ended {
		if now.Sub(at) < time.Hour {
			n++
		}
	}
	return n
}

// next returns the pause before the next life: none after a life that gave way, since others wait for it; unless
// this hour has had its lives.
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
