package badger

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"

	"github.com/concord-go/concord/distributeddata/store"
)

// Store is a store.Store in a directory. Open makes it. One goroutine writes.
type Store struct {
	dir    string
	cfg    Config
	db     *badger.DB
	anchor *anchor
	lost   string // why rows are missing, empty if none are
	free   func(dir string) (int64, error)

	commits chan *request
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when nothing runs any more
	closing sync.Once
	result  error // of Close; set before done is closed
	loads   sync.WaitGroup

	// Of the writing goroutine.
	last mark
	full bool // too little was free, and has not been enough since
	// The size of all tables when it was last measured, at least 1, and what was committed since.
	measured, grown int64

	mu struct {
		sync.Mutex
		failed error
		closed bool   // no more loads
		told   uint32 // mark.told of the next commit
	}
}

var _ store.Store = (*Store)(nil)

// request is a commit on its way.
type request struct {
	batch *store.Batch
	done  chan error // has room for one
}

// Open opens the directory, and makes it if there is none, for this user alone. It returns an error that
// wraps store.ErrLocked while another store has it open, store.ErrCorrupt if it cannot be opened at all, and
// store.ErrInvalid for a Config that is not valid, or a directory that others may write to. Nothing is
// ever deleted to make opening possible.
func Open(dir string, cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := prepare(dir); err != nil {
		return nil, err
	}
	s := &Store{
		dir: dir, cfg: cfg.withDefaults(), free: freeSpace,
		commits: make(chan *request), stop: make(chan struct{}), done: make(chan struct{}),
	}
	err := guarded(func() (err error) {
		s.db, err = badger.Open(badgerOptions(dir, &logger{s}))
		return err
	})
	if err != nil {
		return nil, openError(dir, err)
	}
	if err := guarded(s.compareWithAnchor); err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	go s.write()
	return s, nil
}

func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("badger: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("badger: %w", err)
	}
	if open := info.Mode().Perm() & 0o022; open != 0 {
		return fmt.Errorf("%w: directory %s is writable by others (mode %o); chmod go-w it", store.ErrInvalid, dir, info.Mode().Perm())
	}
	return nil
}

// guarded runs f and makes an error of a panic: that is how Badger meets a damaged table.
func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("corrupt, so that Badger panics: %v", p)
		}
	}()
	return f()
}

// openError sorts what Badger says, which does not wrap its causes.
func openError(dir string, err error) error {
	text := strings.ToLower(err.Error())
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case says("cannot acquire directory lock"):
		err = fmt.Errorf("%w: %w", store.ErrLocked, err)
	case says("checksum", "magic", "manifest", "corrupt", "does not exist for table"):
		err = fmt.Errorf("%w: %w", store.ErrCorrupt, err)
	}
	return fmt.Errorf("badger: directory %s: %w", dir, err)
}

// compareWithAnchor finds out whether the end of the log is missing.
func (s *Store) compareWithAnchor() error {
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	last, trusted, err := readMark(txn)
	if err != nil {
		return fmt.Errorf("directory %s: %w", s.dir, err)
	}
	a, reached, err := openAnchor(s.dir)
	if err != nil {
		return fmt.Errorf("directory %s: anchor: %w", s.dir, err)
	}
	s.anchor, s.last, s.mu.told = a, last, last.told
	s.last.number = max(last.number, reached)
	switch {
	case !trusted:
		s.lost = "the mark of the last commit cannot be read"
	case a.damaged:
		s.lost = "the anchor cannot be read, so rows may be missing"
	case last.number < reached:
		s.lost = fmt.Sprintf("the log ends with commit %d, but %d were acknowledged", last.number, reached)
	}
	if s.lost != "" {
		s.cfg.Logger.Error("durable rows are missing", "directory", s.dir, "why", s.lost)
	}
	return nil
}

// Load implements store.Store.
func (s *Store) Load(ctx context.Context) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		if err := s.beginLoad(ctx); err != nil {
			yield(store.Row{}, err)
			return
		}
		defer s.loads.Done()
		if s.lost != "" && !yield(store.Row{}, store.Corrupt("", s.lost)) {
			return
		}
		txn := s.db.NewTransaction(false)
		defer txn.Discard()
		rows := txn.NewIterator(badger.IteratorOptions{Prefix: []byte{rowPrefix}})
		defer func() { _ = guarded(func() error { rows.Close(); return nil }) }()
		sum := uint32(0)
		for step := rows.Rewind; ; step = rows.Next {
			if err := s.mayLoad(ctx); err != nil {
				yield(store.Row{}, err)
				return
			}
			if err := guarded(func() error { step(); return nil }); err != nil {
				yield(store.Row{}, store.Corrupt("", "the rest cannot be read: "+err.Error()))
				return
			}
			if !rows.Valid() {
				break
			}
			r, its, err := read(rows.Item())
			sum ^= its
			if !yield(r, err) {
				return
			}
		}
		if err := s.compareSum(txn, sum); err != nil {
			yield(store.Row{}, err)
		}
	}
}

// compareSum finds out whether rows are missing that nothing else tells of.
func (s *Store) compareSum(txn *badger.Txn, sum uint32) error {
	m, trusted, err := readMark(txn)
	if err != nil {
		return fmt.Errorf("directory %s: %w", s.dir, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if off := m.sum ^ sum; trusted && off != s.mu.told {
		s.mu.told = off
		return store.Corrupt("", "rows are missing, or some are there that were deleted")
	}
	return nil
}

func (s *Store) beginLoad(ctx context.Context) error {
	if err := s.mayLoad(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return store.ErrClosed
	}
	s.loads.Add(1)
	return nil
}

func (s *Store) mayLoad(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("badger: %w", context.Cause(ctx))
	case <-s.stop:
		return store.ErrClosed
	default:
		return s.failure()
	}
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, b *store.Batch) error {
	if err := s.mayLoad(ctx); err != nil {
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
		return fmt.Errorf("badger: not written: %w", context.Cause(ctx))
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("badger: may be written: %w", context.Cause(ctx))
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

// write is the goroutine that writes.
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
			err := s.anchor.close(s.last.number, s.failure() == nil)
			if err = errors.Join(err, s.db.Close()); err != nil {
				s.result = fmt.Errorf("badger: close: %w", err)
			}
			return
		}
	}
}

// gather adds the commits that wait, as many as fit into one transaction.
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

// commit writes the batches as one transaction, and answers.
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
		_ = s.fail(fmt.Errorf("anchor: %w", err))
	}
}

// attempt writes if there is room. Any other reason not to is a failure for good.
func (s *Store) attempt(all []*request) error {
	size := 0
	for _, r := range all {
		size += r.batch.Size()
	}
	err := guarded(func() error {
		if err := s.room(size); err != nil {
			return err
		}
		return s.transact(all)
	})
	if err == nil || errors.Is(err, store.ErrFull) {
		return err
	}
	return s.fail(err)
}

func (s *Store) transact(all []*request) error {
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	for _, r := range all {
		for o := range r.batch.Ops() {
			change, err := apply(txn, o)
			if err != nil {
				return err
			}
			s.last.sum ^= change
		}
	}
	s.last.number++
	s.last.told = s.toldNow()
	if err := s.last.put(txn); err != nil {
		return err
	}
	if err := txn.Commit(); err != nil {
		return err
	}
	return s.failure() // Badger may have logged a failed sync only
}

// toldNow is how far off Load has told that the sum is.
func (s *Store) toldNow() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.told
}

// fail ends all acknowledgements; the first reason counts.
func (s *Store) fail(why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.failed == nil { // else why may be that failure itself
		s.mu.failed = fmt.Errorf("directory %s: %w: %w", s.dir, store.ErrFailed, why)
		s.cfg.Logger.Error("durable store has failed: nothing is acknowledged until it is opened again",
			"directory", s.dir, "error", why)
	}
	return s.mu.failed
}

func (s *Store) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.failed
}

// room refuses commits while the disk has too little of it: Config.Reserve, and as much as the tables take,
// for compactions may write all of them again before they delete the old ones.
func (s *Store) room(more int) error {
	free, err := s.free(s.dir)
	if err != nil {
		return fmt.Errorf("free space: %w", err)
	}
	need := s.cfg.Reserve + s.tables(more)
	if s.full {
		need += need / 4
	}
	s.full = free < need
	if s.full {
		return fmt.Errorf("directory %s: %w: %d bytes are free, commits need %d", s.dir, store.ErrFull, free, need)
	}
	return nil
}

// tables is about how many bytes all tables take, when more are committed.
func (s *Store) tables(more int) int64 {
	if s.grown += int64(more); s.grown > memTable || s.measured == 0 {
		s.measured, s.grown = 1, 0
		for _, t := range s.db.Tables() {
			s.measured += int64(t.OnDiskSize)
		}
	}
	return s.measured + s.grown
}
