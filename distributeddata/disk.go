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

// disk reads and writes the rows of the durable keys, for all incarnations of a process. It calls
// the store on a separate goroutine, one call at a time, in the order of the requests. The
// goroutine runs while there is work.
type disk struct {
	store store.Store
	log   *slog.Logger
	rows  atomic.Int64 // number loaded so far
	bytes atomic.Int64

	mu struct {
		sync.Mutex
		jobs []func()
		busy bool
		idle chan struct{}    // closed when all jobs are done
		to   func(diskAnswer) // the actor; nil between two incarnations
		left []diskAnswer     // answers for the next actor
	}
}

// diskAnswer carries the store's answer to the actor.
type diskAnswer struct {
	event  core.Event
	failed error // the rows could not be loaded
}

// progressEvery is the interval at which a long load is logged.
const progressEvery = 5 * time.Second

func newDisk(s store.Store, log *slog.Logger) *disk { return &disk{store: s, log: log} }

// do appends a job. The job must turn a panic of the store into an error and must not panic itself.
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
		if !returned { // the store has ended the goroutine with runtime.Goexit
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

// settled waits until all jobs are done.
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

// attach makes answers go to an actor, beginning with those that are waiting for one. With nil,
// answers wait.
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

// commit writes a batch. It passes a context that is never done: the core detects a slow disk by
// itself.
func (k *disk) commit(e core.Commit) {
	k.do(func() {
		err := fmt.Errorf("%w: %w", store.ErrFailed, errExit) // in case the store does not return
		defer func() { k.answer(diskAnswer{event: core.Committed{Number: e.Number, Err: err}}) }()
		err = k.guarded(func() error { return k.store.Commit(context.Background(), e.Batch) })
	})
}

// guarded calls the store. After a panic it is unknown what the store has written.
func (k *disk) guarded(call func() error) error {
	err := guarded(call)
	if p, ok := errors.AsType[*panicked](err); ok {
		k.log.Error("the store panicked", slog.Any("panic", p), slog.String("stack", p.stack))
		return fmt.Errorf("%w: the store panicked: %w", store.ErrFailed, err)
	}
	return err
}

// load reads all rows. Nothing is written until load has succeeded.
func (k *disk) load(owner string) {
	k.do(func() {
		a := diskAnswer{failed: errExit} // in case the store does not return
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
			k.log.Error("a row of the store is corrupt: its contents are requested from other members", slog.Any("error", err))
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
			k.log.Info("loading durable rows", slog.Int("rows", rows), slog.Int64("bytes", bytes),
				slog.Duration("for", time.Since(begun)))
		}
	}
	rows, bytes := l.Progress()
	k.log.Info("durable rows loaded", slog.Int("rows", rows), slog.Int64("bytes", bytes),
		slog.Duration("in", time.Since(begun)))
	return nil
}
