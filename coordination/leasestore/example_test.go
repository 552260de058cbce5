package leasestore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// A write names the version that it replaces, so of two writers that have read the same version one
// fails.
func ExampleStore() {
	ctx := context.Background()
	var store leasestore.Store = memory.New()
	_, none, err := store.Load(ctx, "billing")
	if err != nil {
		fmt.Println(err)
		return
	}
	written, err := store.Swap(ctx, "billing", none,
		leasestore.Record{Owner: "first", Nonce: "n1", Token: 1, TTL: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = store.Swap(ctx, "billing", none,
		leasestore.Record{Owner: "second", Nonce: "n2", Token: 1, TTL: time.Minute})
	fmt.Println(errors.Is(err, leasestore.ErrConflict))

	rec, version, err := store.Load(ctx, "billing")
	fmt.Println(rec.Owner, version == written, err)
	// Output:
	// true
	// first true <nil>
}
