//go:build stores

package fence_test

import (
	"database/sql"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
)

// The same contention on a real PostgreSQL, whose transactions do run side by side. Without one this fails:
// make stores starts it.
func TestTable_OnPostgres(t *testing.T) {
	dsn := os.Getenv("CONCORD_POSTGRES")
	require.NotEmpty(t, dsn, "CONCORD_POSTGRES names no server: run make stores")
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	defer db.Close()
	for _, statement := range []string{
		"DROP TABLE IF EXISTS concord_fence, effects",
		"CREATE TABLE concord_fence (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL, writes BIGINT NOT NULL)",
		"CREATE TABLE effects (n BIGSERIAL, token BIGINT NOT NULL)",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	contend(t, func(token coordination.Token, _ func()) error {
		for {
			err := admit(t.Context(), db, dollars, "ledger", token, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), "INSERT INTO effects (token) VALUES ($1)", int64(token))
				return err
			})
			if !again(err) {
				return err
			}
		}
	})
	var fell, effects int
	require.NoError(t, db.QueryRowContext(t.Context(),
		"SELECT count(*) FILTER (WHERE token < before), count(*) FROM (SELECT token, lag(token) OVER (ORDER BY n) AS before FROM effects) e").Scan(&fell, &effects))
	require.Positive(t, effects)
	require.Zero(t, fell, "effects after one with a higher token, of %d", effects)
}

// again reports whether Admit says that trying again is safe.
func again(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505" // duplicate key: two brought the first token
	}
	return errors.Is(err, fence.ErrContended)
}
