package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/concord-go/concord/coordination"
)

// Table fences transactions of a database. It keeps the tokens in this table, which the caller
// creates once:
//
//	CREATE TABLE concord_fence (
//		resource VARCHAR(255) NOT NULL PRIMARY KEY,
//		token    BIGINT NOT NULL,
//		writes   BIGINT NOT NULL
//	)
//
// If the database ignores case or accents when it compares text, as MySQL does by default, names
// that differ only in these are one resource: give the column a binary collation.
//
// The column writes counts admissions. It makes every admission change the row, for databases that
// report changed rows instead of matching ones.
type Table struct {
	// Placeholder returns the n-th placeholder of a statement, counting from 1. Default: a question
	// mark, as in SQLite and MySQL.
	Placeholder func(n int) string
}

// Dollar returns the placeholder of Postgres, a dollar sign and the number.
func Dollar(n int) string { return "$" + strconv.Itoa(n) }

// Admit compares the token and stores it, in the caller's transaction. Call it before the effects:
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	defer tx.Rollback()
//	if err := table.Admit(ctx, tx, "ledger", grant.Token()); err != nil {
//		return err
//	}
//	_, err = tx.ExecContext(ctx, "UPDATE ledger SET ...")
//	...
//	return tx.Commit()
//
// After a nil error the row of the resource is locked until the transaction ends: no other effect
// is admitted meanwhile, not even that of the next tenure. So a process that is stopped, or whose
// machine disappears, inside its transaction blocks the next holder until that one's ctx ends,
// unless the database ends such transactions itself. With Postgres set
// idle_in_transaction_session_timeout to what a transaction may take, and tcp_keepalives_idle,
// tcp_keepalives_interval, tcp_keepalives_count and client_connection_check_interval so that
// statements of dead clients end as well; all are parameters of a connection:
//
//	postgres://db/shop?idle_in_transaction_session_timeout=10s&tcp_keepalives_idle=5&tcp_keepalives_interval=2&tcp_keepalives_count=3&client_connection_check_interval=5s
//
// MariaDB has idle_transaction_timeout. MySQL and SQLite have no such setting: with SQLite a
// stopped process blocks all others, with MySQL until wait_timeout. After any error, roll back. A
// *StaleError means that the row has a higher token. ErrContended means that another transaction
// came between, as happens with the first token of a resource and with snapshots; try again. Other
// errors are those of the database. A duplicate key is among them if two transactions bring the
// first token of a resource at once; trying again is safe.
//
// Admit needs a database in which an UPDATE locks the rows it changes and compares with the last
// committed values, or fails: Postgres, MySQL and SQLite at every isolation level except READ
// UNCOMMITTED.
func (t Table) Admit(ctx context.Context, tx *sql.Tx, resource string,
	token coordination.Token) error {
	if err := checkResource(resource); err != nil {
		return err
	}
	if err := checkToken(token); err != nil {
		return fmt.Errorf("resource %q: %w", resource, err)
	}
	switch raised, err := t.raise(ctx, tx, resource, token); {
	case err != nil:
		return fmt.Errorf("resource %q: %w", resource, err)
	case raised:
		return nil
	}
	return t.explain(ctx, tx, resource, token)
}

// raise stores the token, and reports whether there was a row without a higher token.
func (t Table) raise(ctx context.Context, tx *sql.Tx, resource string,
	token coordination.Token) (bool, error) {
	result, err := tx.ExecContext(ctx,
		t.text("UPDATE concord_fence SET token = ?, writes = writes + 1 WHERE resource = ? AND token <= ?"),
		int64(token), resource, int64(token))
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	if err == nil && n > 1 {
		err = fmt.Errorf("%d rows in concord_fence, where resource must be the primary key", n)
	}
	return n == 1, err
}

// explain inserts the first row, or returns why raise changed none. It may read an old snapshot:
// that is enough to reject, never to admit.
func (t Table) explain(ctx context.Context, tx *sql.Tx, resource string,
	token coordination.Token) error {
	var highest int64
	err := tx.QueryRowContext(ctx, t.text("SELECT token FROM concord_fence WHERE resource = ?"),
		resource).Scan(&highest)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = tx.ExecContext(ctx,
			t.text("INSERT INTO concord_fence (resource, token, writes) VALUES (?, ?, 1)"),
			resource, int64(token))
	case err == nil && coordination.Token(highest) > token:
		return &StaleError{resource, token, coordination.Token(highest)}
	case err == nil:
		err = ErrContended
	}
	if err != nil {
		return fmt.Errorf("resource %q: %w", resource, err)
	}
	return nil
}

// text inserts the placeholders into a statement.
func (t Table) text(statement string) string {
	if t.Placeholder == nil {
		return statement
	}
	parts := strings.Split(statement, "?")
	var b strings.Builder
	for i, part := range parts[:len(parts)-1] {
		b.WriteString(part + t.Placeholder(i+1))
	}
	return b.String() + parts[len(parts)-1]
}
