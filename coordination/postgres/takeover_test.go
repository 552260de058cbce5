//go:build stores

package postgres_test

import (
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/postgres"
)

func TestTakeover(t *testing.T) {
	name := table()
	dsn, proxy := behind(t)
	db, err := sql.Open("pgx", dsn)
	must(t, err)
	db.SetMaxOpenConns(20)
	t.Cleanup(func() { _ = db.Close() })
	takeover.Run(t, name, open(t, db, name), 16*time.Second, proxy)
}

func holdAll(table string) error {
	db, err := sql.Open("pgx", os.Getenv("CONCORD_POSTGRES"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(20)
	store, err := postgres.New(db, postgres.Config{Table: table})
	if err != nil {
		return err
	}
	return takeover.Hold(store)
}
