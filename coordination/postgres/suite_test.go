//go:build stores

package postgres_test

import (
	"crypto/rand"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/postgres"
	"github.com/concord-go/concord/testkit/leasetest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if table, is := takeover.Place(); is {
		fmt.Fprintln(os.Stderr, holdAll(table))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// connect opens a pool on a real PostgreSQL. Without one these tests fail: make stores starts it.
func connect(t testing.TB) *sql.DB {
	t.Helper()
	dsn := os.Getenv("CONCORD_POSTGRES")
	if dsn == "" {
		t.Fatal("CONCORD_POSTGRES names no server: run make stores")
	}
	db, err := sql.Open("pgx", dsn)
	must(t, err)
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// table returns a different name for each test, so that tests share nothing.
func table() string { return "t_" + strings.ToLower(rand.Text()) }

func open(t testing.TB, db *sql.DB, table string) postgres.Store {
	t.Helper()
	s, err := postgres.New(db, postgres.Config{Table: table})
	must(t, err)
	must(t, s.Install(t.Context()))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	db := connect(t)
	tables := sync.Map{} // of the stores
	begin := func(t *testing.T, table string) leasestore.Store {
		s := open(t, db, table)
		tables.Store(s, table)
		return s
	}
	tableOf := func(s leasestore.Store) string {
		name, _ := tables.Load(s)
		return name.(string)
	}
	leasetest.Run(t, func(t *testing.T) leasestore.Store {
		return begin(t, table())
	}, leasetest.Options{
		Outside: true, TokensJump: true,
		Reopen: func(t *testing.T, s leasestore.Store) (leasestore.Store, error) {
			return begin(t, tableOf(s)), nil
		},
		Delete: func(s leasestore.Store, name string) error {
			_, err := db.ExecContext(t.Context(), "DELETE FROM "+tableOf(s)+" WHERE name = $1",
				name)
			return err
		},
		Damage: func(s leasestore.Store, name string) error {
			_, err := db.ExecContext(t.Context(), "UPDATE "+tableOf(s)+
				` SET owner = '\' WHERE name = $1`, name)
			return err
		},
	})
}

func TestLive(t *testing.T) {
	tables := map[string]string{} // of the parts
	leasetest.Live(t, func(t *testing.T) leasestore.Store {
		if tables[t.Name()] == "" {
			tables[t.Name()] = table()
		}
		return open(t, connect(t), tables[t.Name()])
	}, leasetest.LiveOptions{Disturb: restart(t)})
}
