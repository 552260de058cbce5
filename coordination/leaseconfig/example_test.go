package leaseconfig_test

import (
	"context"
	"fmt"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/memory"
)

// A configuration chooses the store of a lease, and its times. Package node/config reads the
// configuration from a file.
func ExampleProvider() {
	provider, err := leaseconfig.NewProvider(map[string]leaseconfig.Section{
		"shop.billing": {
			LeaseClass: "memory",
			Config:     coordination.Config{TTL: time.Minute, RenewInterval: 6 * time.Second},
		},
	}, map[string]leaseconfig.Opener{"memory": memory.Opener})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer provider.Close(context.Background())
	lease, drop, err := provider.Lease("shop.billing", "invoices", "host:4050")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = drop(context.Background()) }()
	fmt.Println(lease.Do(context.Background(),
		func(_ context.Context, g *coordination.Grant) error {
			fmt.Println(g)
			return nil
		}))
	// Output:
	// lease "invoices", token 1
	// <nil>
}
