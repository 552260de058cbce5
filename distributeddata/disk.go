package distributeddata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/store"
)

// disk reads and writes the rows of the durable keys, for all lives of a process: it calls the store on a goroutine of
// its own, one call at a time, in the order in which it was asked. The goroutine runs while there is something to do.
type disk struct {
	store store.Store
	log   *slog.Logger
	rows  atomic.Int64 // loaded so far
	bytes atomic.Int64

	mu struct {
		sync.Mutex
		jobs []func()
		busy bool
		idle chan struct{}    // closed when nothing is left to do
		to   func(diskAnswer) // the actor; nil between two lives
		left []diskAnswer     // for the next actor
	}
}

// diskAnswer brings the actor what the store has answered.
type diskAnswer struct {
	event  core.Event
	failed error // the rows could not be loaded
}

// progressEvery is how often a long load is logged.
const progressEvery = 5 * time.Second

func newDisk(s store.Store, log *slog.Logger) *disk { return &disk{store: s, log: log} }

// do appends a job. A panic of the store is an error to the job, which must not panic itself.
func (k *disk) do(job func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.jobs = append(k.mu.jobs, job)
	if !k.mu.busy {
		k.mu.busy, k.mu.idle = true, make(chan struct{})
		go k.run()
	}
}

func (k *disk) run() {
	returned := false
	defer func() {
		if !returned { // the store has ended the goroutine
			go k.run()
		}
	}()
	for {
		k.mu.Lock()
		if len(k.mu.jobs) == 0 {
			k.mu.busy, returned = false, true
			close(k.mu.idle)
			k.mu.Unlock()
			return
		}
		job := k.mu.jobs[0]
		k.mu.jobs = k.mu.jobs[1:]
		k.mu.Unlock()
		job()
	}
}

// settled waits until nothing is left to do.
func (k *disk) settled(ctx context.Context) error {
	k.mu.Lock()
	idle, busy := k.mu.idle, k.mu.busy
	k.mu.Unlock()
	if !busy {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: a batch is still being written: %w", ErrStore, context.Cause(ctx))
	}
}

// attach has answers sent to an actor, those first that have waited for one; nil: they wait.
func (k *disk) attach(to func(diskAnswer)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.to = to
	if to == nil {
		return
	}
	for _, a := range k.mu.left {
		to(a)
	}
	k.mu.left = nil
}

func (k *disk) answer(a diskAnswer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.to == nil {
		k.mu.left = append(k.mu.left, a)
		return
	}
	k.mu.to(a)
}

// commit writes a batch. Its context does not end: the core notices by itself that the disk is slow.
func (k *disk) commit(e core.Commit) {
	k.do(func() {
		err := fmt.Errorf("%w: %w", store.ErrFailed, errExit) // unless the store returns
		defer func() { k.answer(diskAnswer{event: core.Committed{Number: e.Number, Err: err}}) }()
		err = k.guarded(func() error { return k.store.Commit(context.Background(), e.Batch) })
	})
}

// guarded calls the store. After a panic nobody knows what it has written.
func (k *disk) guarded(call func() error) error {
	err := guarded(call)
	if p, ok := errors.AsType[*panicked](err); ok {
		k.log.Error("the store panicked", slog.Any("panic", p), slog.String("stack", p.stack))
		return fmt.Errorf("%w: the store panicked: %w", store.ErrFailed, err)
	}
	return err
}

// load reads all rows. Nothing is written before it has ended, or after it has failed.
func (k *disk) load(owner string) {
	k.do(func() {
		a := diskAnswer{failed: errExit} // unless the store returns
		defer func() { k.answer(a) }()
		l := core.NewLoader(owner)
		if a.failed = k.guarded(func() error { return k.read(l) }); a.failed == nil {
			a.event = core.Loaded{Image: l.Image()}
		}
	})
}

func (k *disk) read(l *core.Loader) error {
	k.rows.Store(0)
	k.bytes.Store(0)
	begun := time.Now()
	logged := begun
	for row, err := range k.store.Load(context.Background()) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			k.log.Error("a row of the store cannot be trusted: what it held is asked of the others", slog.Any("error", err))
			l.Corrupt(row.Key)
		case err != nil:
			return err
		default:
			if err := l.Add(row.Key, row.Value); err != nil {
				return err
			}
		}
		rows, bytes := l.Progress()
		k.rows.Store(int64(rows))
		k.bytes.Store(bytes)
		if rows%1024 == 0 && time.Since(logged) >= progressEvery {
			logged = time.Now()
			k.log.Info("loading durable rows", slog.Int("rows", rows), slog.Int64("bytes", bytes), slog.Duration("for", time.Since(begun)))
		}
	}
	rows, bytes := l.Progress()
	k.log.Info("durable rows loaded", slog.Int("rows", rows), slog.Int64("bytes", bytes), slog.Duration("in", time.Since(begun)))
	return nil
}
