//go:build stores

package postgres_test

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
)

// Package fence tests its table on a database that runs transactions one by one. Here
// several tenures write at the same time on a real PostgreSQL, whose transactions run side by side.
func TestFenceTable_EffectsNeverFallInToken(t *testing.T) {
	db := connect(t)
	for _, statement := range []string{
		"DROP TABLE IF EXISTS concord_fence, effects",
		"CREATE TABLE concord_fence (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL, writes BIGINT NOT NULL)",
		"CREATE TABLE effects (n BIGSERIAL, token BIGINT NOT NULL)",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	var writers sync.WaitGroup
	for seed := range uint64(6) {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 2))
			for n := range 40 {
				token := coordination.Token(1 + n/4 + r.IntN(4))
				err := admitEffect(t.Context(), db, token)
				for again(err) {
					err = admitEffect(t.Context(), db, token)
				}
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Errorf("token %d: %v", token, err)
				}
			}
		})
	}
	writers.Wait()
	var fell, effects int
	must(t, db.QueryRowContext(t.Context(),
		"SELECT count(*) FILTER (WHERE token < before), count(*) FROM (SELECT token, lag(token) OVER (ORDER BY n) AS before FROM effects) e").Scan(&fell, &effects))
	if effects == 0 || fell > 0 {
		t.Errorf("%d of %d effects follow one with a higher token", fell, effects)
	}
}

// TestFenceTable_StoppedHolderBlocksForTheTimeout: the holder stops inside its transaction.
// With the setting that Table.Admit recommends, the next holder is admitted all the same.
func TestFenceTable_StoppedHolderBlocksForTheTimeout(t *testing.T) {
	db := connect(t)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS concord_fence (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL, writes BIGINT NOT NULL)")
	must(t, err)
	holder, err := sql.Open("pgx", os.Getenv("CONCORD_POSTGRES")+
		" idle_in_transaction_session_timeout=300ms tcp_keepalives_idle=5 tcp_keepalives_interval=2 tcp_keepalives_count=3 client_connection_check_interval=5s")
	must(t, err)
	defer holder.Close()
	table, resource := fence.Table{Placeholder: fence.Dollar}, crand.Text()
	for token := coordination.Token(1); token <= 3; token += 2 { // a new row, and a present one
		stopped, err := holder.BeginTx(t.Context(), nil)
		must(t, err)
		must(t, table.Admit(t.Context(), stopped, resource, token))
		next, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		must(t, table.Admit(t.Context(), next, resource, token+1))
		must(t, next.Commit())
		if err := stopped.Commit(); err == nil {
			t.Errorf("a transaction with token %d was committed after token %d", token, token+1)
		}
	}
}

// admitEffect is one transaction with the fence and an effect that records token.
func admitEffect(ctx context.Context, db *sql.DB, token coordination.Token) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := (fence.Table{Placeholder: fence.Dollar}).Admit(ctx, tx, "ledger", token); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO effects (token) VALUES ($1)",
		int64(token)); err != nil {
		return err
	}
	return tx.Commit()
}

// again reports whether Admit says that trying again is safe.
func again(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "23505" // duplicate key: two writers inserted the first token
	}
	return errors.Is(err, fence.ErrContended)
}
