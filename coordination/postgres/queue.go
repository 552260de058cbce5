package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

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

// changeQueue replaces the queue of a name under the lock of its row.
func (s *Store) changeQueue(ctx context.Context, name string, change func(*queue.Queue)) error {
	text := escape(name)
	if len(text) > maxName {
		return tooLong(name)
	}
	if err := s.inTransaction(ctx, func(tx *sql.Tx) error {
		var data []byte
		if err := tx.QueryRowContext(ctx, s.lockQueue, text).Scan(&data); err != nil {
			return err
		}
		q := queue.Decode(data)
		change(&q)
		if len(q.Places) == 0 {
			_, err := tx.ExecContext(ctx, s.dropQueue, text)
			return err
		}
		data, err := json.Marshal(q)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, s.writeQueue, text, string(data))
		return err
	}); err != nil {
		return fmt.Errorf("postgres: queue of lease %.80q: %w", name, err)
	}
	return nil
}

// inTransaction runs do in a transaction and commits it, unless do fails.
func (s *Store) inTransaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}
