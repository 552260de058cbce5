package inspect_test

import (
	"context"
	"fmt"
	"os"

	"github.com/concord-go/concord/distributeddata/inspect"
)

// The directory of a stopped member is verified and exported.
func Example() {
	ctx := context.Background()
	rows, err := inspect.Open("/var/lib/shop/ddata", nil) // the key, if the directory is encrypted
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rows.Close()
	report, err := inspect.Verify(ctx, rows)
	fmt.Println(report, err)
	fmt.Println(inspect.Export(ctx, rows, os.Stdout))
}
