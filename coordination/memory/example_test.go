package memory_test

import (
	"context"
	"fmt"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
)

// Two sessions on one store exclude each other, as two processes on a store with a server do.
func Example() {
	ctx, store := context.Background(), memory.New()
	a, err1 := coordination.Open(store, coordination.Config{Owner: "a"})
	b, err2 := coordination.Open(store, coordination.Config{Owner: "b"})
	if err1 != nil || err2 != nil {
		fmt.Println(err1, err2)
		return
	}
	defer a.Close(ctx)
	defer b.Close(ctx)

	grant, err := a.Lease("report").TryAcquire(ctx)
	fmt.Println(grant, err)
	_, err = b.Lease("report").TryAcquire(ctx)
	fmt.Println(err)
	fmt.Println(grant.Release(ctx))
	// Output:
	// lease "report", token 1 <nil>
	// lease "report": coordination: lease held by another owner: a, token 1
	// <nil>
}
