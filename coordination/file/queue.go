package file

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Enqueue implements leasestore.Queuer.
func (s *Store) Enqueue(ctx context.Context, name string,
	p leasestore.Waiter) (ahead []leasestore.Waiter, err error) {
	err = s.changeQueue(ctx, name, func(q *queue.Queue) { ahead = q.Enqueue(p) })
	return ahead, err
}

// Leave implements leasestore.Queuer.
func (s *Store) Leave(ctx context.Context, name string, gone []leasestore.Waiter) error {
	return s.changeQueue(ctx, name, func(q *queue.Queue) { q.Leave(gone...) })
}

// changeQueue replaces the queue of a name under its lock. It does not sync the file: a crash of
// the machine that loses a place has also killed its session.
func (s *Store) changeQueue(ctx context.Context, name string, change func(*queue.Queue)) error {
	lock, err := s.lock(ctx, name)
	if err != nil {
		return err
	}
	defer lock.release()
	q, err := s.readQueue(name)
	if err != nil {
		return err
	}
	change(&q)
	path := base(name) + queueSuffix
	if len(q.Places) == 0 {
		if err := s.root.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("file: queue of lease %q: %w", name, err)
		}
		return nil
	}
	data, err := json.Marshal(q)
	if err != nil {
		return fmt.Errorf("file: queue of lease %q: %w", name, err)
	}
	if err := s.root.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("file: queue of lease %q: %w", name, err)
	}
	if err := s.root.Rename(path+".new", path); err != nil {
		return fmt.Errorf("file: queue of lease %q: %w", name, err)
	}
	return nil
}

// readQueue returns an empty queue for one that cannot be decoded: only the order is lost.
func (s *Store) readQueue(name string) (queue.Queue, error) {
	data, err := readBounded(s.root, base(name)+queueSuffix, maxRecord)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, leasestore.ErrDamaged):
		return queue.Queue{}, nil
	case err != nil:
		return queue.Queue{}, fmt.Errorf("file: queue of lease %q: %w", name, err)
	}
	return queue.Decode(data), nil
}
