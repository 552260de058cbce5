package disk

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/concord-go/concord/distributeddata/store"
)

// Load implements store.Store.
func (s *Store) Load(ctx context.Context) iter.Seq2[store.Row, error] {
	return func(yield func(store.Row, error) bool) {
		if err := s.beginLoad(ctx); err != nil {
			yield(store.Row{}, err)
			return
		}
		defer s.loads.Done()
		if s.lost != "" && !yield(store.Row{}, corrupt("", s.lost)) {
			return
		}
		var view Snapshot
		err := Guarded(func() (err error) {
			view, err = s.engine.View()
			return err
		})
		if err != nil {
			yield(store.Row{}, err)
			return
		}
		defer func() { _ = Guarded(func() error { view.Close(); return nil }) }()
		sum, ended := s.rows(ctx, view, yield)
		if !ended {
			return
		}
		if err := s.compareSum(view, sum); err != nil {
			yield(store.Row{}, err)
		}
	}
}

// rows yields all rows, and returns the sum of their checksums. ended is false if yield stopped the
// sequence or an error did.
func (s *Store) rows(ctx context.Context, view Snapshot,
	yield func(store.Row, error) bool) (sum uint32, ended bool) {
	cursor := view.Rows()
	defer func() { _ = Guarded(func() error { cursor.Close(); return nil }) }()
	for {
		if err := s.may(ctx); err != nil {
			yield(store.Row{}, err)
			return 0, false
		}
		var key, sealed []byte
		var err error
		stuck := Guarded(func() error { key, sealed, err = cursor.Next(); return nil })
		switch {
		case stuck != nil:
			return sum, yield(store.Row{}, corrupt("", "the rest cannot be read: "+
				stuck.Error()))
		case errors.Is(err, io.EOF):
			return sum, true
		case err != nil && len(key) > 0:
			err = corrupt(string(key[1:]), err.Error())
			if !yield(store.Row{Key: string(key[1:])}, err) {
				return 0, false
			}
		case err != nil:
			if !yield(store.Row{}, corrupt("", err.Error())) {
				return 0, false
			}
		default:
			r, its, err := open(key, sealed)
			sum ^= its
			if !yield(r, err) {
				return 0, false
			}
		}
	}
}

// compareSum detects missing rows that nothing else reveals.
func (s *Store) compareSum(view Snapshot, sum uint32) error {
	var m mark
	var trusted bool
	err := Guarded(func() (err error) {
		m, trusted, err = readMark(view)
		return err
	})
	if err != nil {
		return corrupt("", "the mark of the last commit cannot be read: "+err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if off := m.sum ^ sum; trusted && off != s.mu.told {
		s.mu.told = off
		return corrupt("", "rows are missing, or some are there that were deleted")
	}
	return nil
}

func (s *Store) beginLoad(ctx context.Context) error {
	if err := s.may(ctx); err != nil {
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
