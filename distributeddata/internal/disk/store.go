package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
)

// Store is a store.Store over an engine. Use Open to create one. One goroutine writes.
type Store struct {
	kind   Kind
	dir    string
	log    *slog.Logger
	engine Engine
	anchor *anchor
	lost   string // why rows are missing; empty if none are

	commits chan *request
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when the writing goroutine has returned
	closing sync.Once
	result  error // the result of Close; set before done is closed
	loads   sync.WaitGroup

	last mark // owned by the writing goroutine

	mu struct {
		sync.Mutex
		failed error
		closed bool   // no further loads may begin
		told   uint32 // mark.told of the next commit
	}
}

var _ store.Store = (*Store)(nil)

// Kind is a kind of store.
type Kind struct {
	Name string                 // used in the anchor and in errors
	Ours func(name string) bool // whether a file of this name may belong to the engine
}

// request is a pending commit.
type request struct {
	batch *store.Batch
	done  chan error // buffered for one
}

// Open opens a directory, and creates it if it does not exist. It checks and locks the directory
// before it calls begin.
func Open(kind Kind, dir string, log *slog.Logger, begin func(s *Store) (Engine,
	error)) (*Store, error) {
	s := &Store{
		kind: kind, dir: dir, log: log,
		commits: make(chan *request), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := s.open(begin); err != nil {
		return nil, fmt.Errorf("%s: %w", kind.Name, explain(dir, err))
	}
	go s.write()
	return s, nil
}

func (s *Store) open(begin func(s *Store) (Engine, error)) (err error) {
	rows, err := prepare(s.dir, s.kind.Ours)
	if err != nil {
		return err
	}
	if s.anchor, err = openAnchor(s.dir, s.kind.Name, rows); err != nil {
		return err
	}
	s.private()
	err = Guarded(func() (err error) {
		s.engine, err = begin(s)
		return err
	})
	if err != nil {
		return errors.Join(err, s.anchor.file.Close())
	}
	if err := Guarded(s.compareWithAnchor); err != nil {
		return errors.Join(err, s.engine.Close(), s.anchor.file.Close())
	}
	s.private()
	return nil
}

// private keeps others out of the directory, also after Close. Some file systems have no modes.
func (s *Store) private() {
	if err := private(s.dir); err != nil {
		s.log.Warn("others may be able to read the directory of a durable store", "directory",
			s.dir, "error", err)
	}
}

// compareWithAnchor detects whether the last commits are missing.
func (s *Store) compareWithAnchor() error {
	view, err := s.engine.View()
	if err != nil {
		return err
	}
	defer view.Close()
	last, trusted, err := readMark(view)
	if err != nil {
		return err
	}
	reached := s.anchor.number
	s.last, s.mu.told = last, last.told
	s.last.number = max(last.number, reached)
	if s.anchor.damaged != "" {
		s.anchor.number = s.last.number // written with the next commit
	}
	switch {
	case !trusted:
		s.Lost("the mark of the last commit cannot be read")
	case s.anchor.damaged != "":
		s.Lost("the anchor cannot be read (" + s.anchor.damaged + "), so rows may be missing")
	case last.number < reached:
		s.Lost(fmt.Sprintf("the log ends with commit %d, but %d were acknowledged", last.number,
			reached))
	}
	return nil
}

// Lost makes every Load report that rows may be missing. It is called by begin.
func (s *Store) Lost(why string) {
	if s.lost == "" {
		s.lost = why
		s.log.Error("durable rows are missing", "directory", s.dir, "why", why)
	}
}

// Dir returns the directory.
func (s *Store) Dir() string { return s.dir }

// Log returns the logger.
func (s *Store) Log() *slog.Logger { return s.log }

// may returns an error if the store cannot be used, or nil.
func (s *Store) may(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", s.kind.Name, context.Cause(ctx))
	case <-s.stop:
		return store.ErrClosed
	default:
		return s.failure()
	}
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, b *store.Batch) error {
	if err := s.may(ctx); err != nil {
		return err
	}
	if err := b.Validate(); err != nil || b.Len() == 0 {
		return err
	}
	r := &request{b, make(chan error, 1)}
	select {
	case s.commits <- r:
	case <-s.stop:
		return store.ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("%s: not written: %w", s.kind.Name, context.Cause(ctx))
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: may be written: %w", s.kind.Name, context.Cause(ctx))
	}
}

// Close implements store.Store.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.mu.Lock()
		s.mu.closed = true
		s.mu.Unlock()
		close(s.stop)
	})
	<-s.done
	return s.result
}

// write is the body of the writing goroutine.
func (s *Store) write() {
	defer close(s.done)
	later := time.NewTimer(s.anchor.age)
	defer later.Stop()
	for {
		select {
		case r := <-s.commits:
			s.commit(s.gather(r))
			later.Reset(s.anchor.age)
		case <-later.C:
			s.raiseAnchor()
		case <-s.stop:
			s.loads.Wait()
			err := Guarded(s.engine.Close)
			s.private()
			if err = errors.Join(err, s.anchor.close(s.last.number, err == nil &&
				s.failure() == nil)); err != nil {
				s.result = fmt.Errorf("%s: close: %w", s.kind.Name, err)
			}
			return
		}
	}
}

// gather adds waiting commits, as many as fit into one transaction.
func (s *Store) gather(first *request) []*request {
	all := []*request{first}
	rows, size := first.batch.Len(), first.batch.Size()
	for rows < store.MaxRows/2 && size < store.MaxBatch/2 {
		select {
		case r := <-s.commits:
			if rows+r.batch.Len() > store.MaxRows || size+r.batch.Size() > store.MaxBatch {
				s.commit(all)
				all, rows, size = nil, 0, 0
			}
			all = append(all, r)
			rows, size = rows+r.batch.Len(), size+r.batch.Size()
		default:
			return all
		}
	}
	return all
}

// commit writes the batches as one transaction, and answers the requests.
func (s *Store) commit(all []*request) {
	err := s.failure()
	if err == nil {
		err = s.attempt(all)
	}
	for _, r := range all {
		r.done <- err
	}
	s.raiseAnchor()
}

func (s *Store) raiseAnchor() {
	if s.failure() != nil {
		return
	}
	if err := s.anchor.raise(s.last.number, time.Now()); err != nil {
		_ = s.Fail(fmt.Errorf("anchor: %w", err))
	}
}

// attempt writes if there is room. Every error other than a full disk makes the store fail for
// good.
func (s *Store) attempt(all []*request) error {
	size := 0
	for _, r := range all {
		size += r.batch.Size()
	}
	before := s.last
	err := Guarded(func() error {
		if err := s.engine.Room(size); err != nil {
			return err
		}
		return s.engine.Update(func(tx Tx) error { return s.transact(tx, all) })
	})
	if err == nil {
		return s.failure() // an engine may have reported a failed sync meanwhile
	}
	s.last = before
	if errors.Is(err, store.ErrFull) {
		return err
	}
	return s.Fail(err)
}

func (s *Store) transact(tx Tx, all []*request) error {
	for _, r := range all {
		for o := range r.batch.Ops() {
			change, err := apply(tx, o)
			if err != nil {
				return err
			}
			s.last.sum ^= change
		}
	}
	s.last.number++
	s.last.told = s.toldNow()
	return s.last.put(tx)
}

// toldNow returns the deviation of the sum that Load has reported.
func (s *Store) toldNow() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.told
}

// Fail ends all acknowledgements. It returns the error of its first call.
func (s *Store) Fail(why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.failed == nil { // otherwise why may wrap that failure
		s.mu.failed = fmt.Errorf("directory %s: %w: %w", s.dir, store.ErrFailed, why)
		s.log.Error("durable store has failed: nothing is acknowledged until it is opened again",
			"directory", s.dir, "error", why)
	}
	return s.mu.failed
}

func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.failed
}
