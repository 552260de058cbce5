package testkit

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
)

// diskStore is a store on a Disk, created by Disk.Open.
type diskStore struct {
	disk *Disk
	name string
	on   *volume
	turn chan struct{} // full while a sync is in progress
	end  chan struct{} // closed by Close or a crash

	// Guarded by Disk.mu.
	over   bool
	failed error
}

var _ store.Store = (*diskStore)(nil)

// Load implements store.Store.
func (s *diskStore) Load(ctx context.Context) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		rows, err := s.snapshot(ctx)
		if err != nil {
			yield(store.Row{}, err)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			if err := s.readable(ctx); err != nil {
				yield(store.Row{}, err)
				return
			}
			var more bool
			if c := rows[key]; c.flipped {
				more = yield(store.Row{Key: key}, fmt.Errorf("%w: row %q: checksum does not match",
					store.ErrCorrupt, key))
			} else {
				more = yield(store.Row{Key: key, Value: bytes.Clone(c.value)}, nil)
			}
			if !more {
				return
			}
		}
	}
}

func (s *diskStore) snapshot(ctx context.Context) (map[string]cell, error) {
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return maps.Clone(s.on.rows), nil
}

func (s *diskStore) readable(ctx context.Context) error {
	if ctx.Err() != nil {
		return s.errorf(context.Cause(ctx))
	}
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return s.stateLocked()
}

// stateLocked returns why the store cannot be used, or nil.
func (s *diskStore) stateLocked() error {
	switch {
	case s.over:
		return s.errorf(store.ErrClosed)
	case s.failed != nil:
		return s.failed
	}
	return nil
}

// Commit implements store.Store.
func (s *diskStore) Commit(ctx context.Context, b *store.Batch) error {
	if err := s.awake(ctx); err != nil {
		return err
	}
	w, f, err := s.write(b)
	if err != nil || w == nil {
		return err
	}
	if err := s.settle(ctx, w, f); err != nil {
		return err
	}
	return s.awake(ctx)
}

// settle waits until a batch is synced, possibly by the sync of another batch.
func (s *diskStore) settle(ctx context.Context, w *write, f DiskFaults) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return s.errorf(context.Cause(ctx))
	case <-s.end:
	}
	if f.Delay > 0 && !s.synced(w) {
		t := time.NewTimer(f.Delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return s.errorf(context.Cause(ctx))
		case <-s.end:
		}
	}
	return s.sync(w, f)
}

// awake waits while the machine is frozen, and returns an error if the call must not continue.
func (s *diskStore) awake(ctx context.Context) error {
	for {
		if ctx.Err() != nil {
			return s.errorf(context.Cause(ctx))
		}
		frozen := s.disk.frozen()
		if frozen == nil {
			return nil
		}
		select {
		case <-frozen:
		case <-ctx.Done():
		case <-s.end:
			return s.errorf(store.ErrClosed)
		}
	}
}

// write writes a batch to the disk. It returns nil if there is nothing to sync.
func (s *diskStore) write(b *store.Batch) (*write, DiskFaults, error) {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if err := s.stateLocked(); err != nil {
		return nil, DiskFaults{}, err
	}
	if err := b.Validate(); err != nil {
		return nil, DiskFaults{}, s.errorf(err)
	}
	f := s.disk.faultsForLocked(DiskCommit{s.name, b})
	switch {
	case f.Full:
		return nil, f, s.errorf(store.ErrFull)
	case b.Len() == 0:
		return nil, f, nil
	}
	w := &write{}
	for o := range b.Ops() {
		o.Value = bytes.Clone(o.Value)
		w.ops = append(w.ops, o)
	}
	s.on.written = append(s.on.written, w)
	return w, f, nil
}

func (s *diskStore) synced(w *write) bool {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	return w.synced
}

// sync syncs w and everything else written so far, unless an earlier sync has done so.
func (s *diskStore) sync(w *write, f DiskFaults) error {
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	if !w.synced {
		if err := s.stateLocked(); err != nil {
			return err
		}
		if f.FailSync {
			s.failed = s.errorf(fmt.Errorf("%w: %w", store.ErrFailed, errSync))
			return s.failed
		}
		s.disk.syncLocked(s.on)
	}
	s.disk.mu.stats.Commits++
	return nil
}

// Close implements store.Store.
func (s *diskStore) Close() error {
	s.turn <- struct{}{} // wait for a sync in progress
	defer func() { <-s.turn }()
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	s.endLocked(s.failed != nil)
	return nil
}

// endLocked closes the store, once. If powerless is set, it does so without a last sync.
func (s *diskStore) endLocked(powerless bool) {
	if s.over {
		return
	}
	s.over = true
	close(s.end)
	if powerless {
		s.disk.loseLocked(s.on)
	} else if len(s.on.written) > 0 {
		s.disk.syncLocked(s.on)
	}
	s.on.opener = nil
}

func (s *diskStore) errorf(err error) error { return fmt.Errorf("store %q: %w", s.name, err) }
