package snippets

import (
	"context"
	"database/sql"
	"errors"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
)

// Ledger is of docs/from-etcd-locks.md.
func Ledger(ctx context.Context, db *sql.DB, grant *coordination.Grant, amount int) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rollback(tx)) }()
	table := fence.Table{Placeholder: fence.Dollar}
	if err := table.Admit(ctx, tx, "ledger", grant.Token()); err != nil {
		return err // *fence.StaleError: another holder has written
	}
	if _, err := tx.ExecContext(ctx, "UPDATE ledger SET total = total + $1", amount); err != nil {
		return err
	}
	return tx.Commit()
}

func rollback(tx *sql.Tx) error {
	if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) {
		return err
	}
	return nil
}

// Batches is of docs/from-etcd-locks.md.
func Batches(grant *coordination.Grant, customers []string,
	bill func(string, coordination.Token) error) error {
	for _, customer := range customers {
		if err := grant.Check(); err != nil { // compares the clock: no I/O
			return err
		}
		if err := bill(customer, grant.Token()); err != nil {
			return err
		}
	}
	return nil
}
