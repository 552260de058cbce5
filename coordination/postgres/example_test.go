package postgres_test

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/postgres"
)

// A program opens a database, a store and a session, and closes them in the opposite order. Install
// creates the tables, once; or apply Store.Schema with your own migrations.
func Example() {
	ctx := context.Background()
	db, err := sql.Open("pgx", "postgres://shop@db/shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	store, err := postgres.New(db, postgres.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	if err := store.Install(ctx); err != nil {
		fmt.Println(err)
		return
	}
	session, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(ctx)
	fmt.Println(session.Lease("report").Do(ctx, work))
}

func work(context.Context, *coordination.Grant) error { return nil }
