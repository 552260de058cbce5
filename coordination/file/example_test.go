package file_test

import (
	"context"
	"fmt"
	"os"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
)

// Processes of one machine that open the same directory share its leases. Tokens rise from one
// tenure to the next, also after all processes have ended.
func Example() {
	dir, err := os.MkdirTemp("", "leases")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for _, process := range []string{"a", "b"} {
		store, err := file.Open(dir)
		if err != nil {
			fmt.Println(err)
			return
		}
		session, err := coordination.Open(store, coordination.Config{Owner: process})
		if err != nil {
			fmt.Println(err)
			return
		}
		err = session.Lease("report").Do(context.Background(),
			func(_ context.Context, g *coordination.Grant) error {
				fmt.Println(process, "holds", g)
				return nil
			})
		fmt.Println(err, session.Close(context.Background()), store.Close())
	}
	// Output:
	// a holds lease "report", token 1
	// <nil> <nil> <nil>
	// b holds lease "report", token 2
	// <nil> <nil> <nil>
}
