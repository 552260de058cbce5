package bbolt_test

import (
	"context"
	"fmt"
	"os"

	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
)

// A program opens the store before distributeddata.New, passes it as Config.Store, and closes it
// after the replicator. Only the replicator reads and writes its rows; here the example does, to
// show that a row survives.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rows")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	rows, err := bbolt.Open(dir, bbolt.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	b := &store.Batch{}
	b.Put("key", []byte("value"))
	fmt.Println(rows.Commit(ctx, b), rows.Close())

	rows, err = bbolt.Open(dir, bbolt.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for row, err := range rows.Load(ctx) {
		fmt.Println(row.Key, string(row.Value), err)
	}
	fmt.Println(rows.Close())
	// Output:
	// <nil> <nil>
	// key value <nil>
	// <nil>
}
