package history_test

import (
	"fmt"
	"time"

	"github.com/concord-go/concord/testkit/history"
)

// A write without an answer may appear late, or never, but it must not appear and disappear again.
func Example() {
	var rec history.Recorder[history.RegisterOp, history.RegisterResult]
	read := func(shows string) {
		rec.Begin(1, history.RegisterOp{Key: "x"}).End(history.RegisterResult{Value: shows})
	}
	verdict := func() {
		ok, err := history.Linearizable(history.Register(), rec.Operations(), time.Minute)
		fmt.Println(ok, err)
	}
	rec.Begin(0, history.RegisterOp{Key: "x", Kind: history.Write, Value: "1"}).Unknown()
	read("")
	verdict()
	read("1")
	verdict()
	read("")
	verdict()
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
}
