package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
)

// database has the accounts, and the tokens under which they were changed.
type database struct {
	*sql.DB

	mu      sync.Mutex
	delayed *delay // the next transaction is delayed; nil: none is
}

var tokens = fence.Table{Placeholder: fence.Dollar}

func (d *database) install(ctx context.Context) error {
	for _, statement := range []string{
		"DROP TABLE IF EXISTS concord_example_accounts, concord_example_deposits, concord_fence",
		"CREATE TABLE concord_example_accounts (id TEXT PRIMARY KEY, balance BIGINT NOT NULL)",
		"CREATE TABLE concord_example_deposits (account TEXT, number BIGINT, PRIMARY KEY (account, number))",
		`CREATE TABLE concord_fence (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL,
			writes BIGINT NOT NULL)`,
	} {
		if _, err := d.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.40s…: %w", statement, err)
		}
	}
	return nil
}

// deposit changes the balance of an account, once for each number, and returns it. It changes
// nothing if a later tenure has changed the account.
func (d *database) deposit(ctx context.Context, id string, token coordination.Token,
	number, amount int) (balance int, err error) {
	late := d.next()
	defer func() { late.end(err) }()
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }() // without effect after Commit
	if err := tokens.Admit(ctx, tx, "account "+id, token); err != nil {
		return 0, err
	}
	res, err := tx.ExecContext(ctx,
		"INSERT INTO concord_example_deposits VALUES ($1, $2) ON CONFLICT DO NOTHING", id, number)
	if err != nil {
		return 0, err
	}
	added, err := res.RowsAffected() // 0: the deposit was made before, and its answer was lost
	if err != nil {
		return 0, err
	}
	err = tx.QueryRowContext(ctx, `INSERT INTO concord_example_accounts AS a VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE SET balance = a.balance + $2 RETURNING balance`,
		id, int64(amount)*added).Scan(&balance)
	if err != nil {
		return 0, err
	}
	return balance, tx.Commit()
}

// account describes an account.
func (d *database) account(ctx context.Context, id string) (text string, err error) {
	var balance, deposits int
	err = d.QueryRowContext(ctx, `SELECT balance,
		(SELECT count(*) FROM concord_example_deposits WHERE account = id)
		FROM concord_example_accounts WHERE id = $1`, id).Scan(&balance, &deposits)
	return fmt.Sprintf("%d after %d deposits", balance, deposits), err
}

// delay makes a transaction wait, as a long garbage collection or a slow network does.
type delay struct {
	begun, proceed, ended chan struct{}
	err                   error // of the transaction, once ended is closed
}

// delayNext delays the next transaction until the caller closes proceed.
func (d *database) delayNext() *delay {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.delayed = &delay{begun: make(chan struct{}), proceed: make(chan struct{}),
		ended: make(chan struct{})}
	return d.delayed
}

func (d *database) next() *delay {
	d.mu.Lock()
	late := d.delayed
	d.delayed = nil
	d.mu.Unlock()
	if late != nil {
		close(late.begun)
		<-late.proceed
	}
	return late
}

func (l *delay) end(err error) {
	if l != nil {
		l.err = err
		close(l.ended)
	}
}
