package config_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/node/config"
)

// The configuration decides which store a lease is in, and its timing.
func ExampleRead() {
	file, err := config.Read(strings.NewReader(`
leases:
  defaults: {heartbeat-timeout: 60s}
  shop.billing: {lease-class: memory, heartbeat-interval: 6s}
`), os.LookupEnv, config.Kinds{Leases: map[string]leaseconfig.Opener{"memory": memory.Opener}})
	if err != nil {
		fmt.Println(err)
		return
	}
	provider, err := file.Provider()
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

// All problems are reported at once.
func ExampleRead_problems() {
	_, err := config.Read(strings.NewReader(`
leases:
  shop:
    lease-class: fiel
    heartbeat-timout: 60s
singletons:
  billing: {tries: 1001}
`), os.LookupEnv, config.Kinds{Leases: map[string]leaseconfig.Opener{"memory": memory.Opener}})
	fmt.Println(err)
	// Output:
	// config: invalid: concord.yaml: 3 problems
	// 	line 4: leases.shop.lease-class: "fiel" is none of ["memory"]
	// 	line 5: leases.shop.heartbeat-timout: unknown key, did you mean heartbeat-timeout?
	// 	line 7: singletons.billing.tries: tries is 1001, it must be from 1 to 1000
}
