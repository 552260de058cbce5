//go:build stores

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
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
