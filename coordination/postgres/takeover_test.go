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
	takeover.Run(t, name, open(t, connect(t), name), 16*time.Second)
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
