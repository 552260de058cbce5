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

// One of two replicas has lost a write that it acknowledged.
func ExampleSet() {
	var rec history.Recorder[history.SetOp[string], history.SetResult[string]]
	add := func(x string) {
		rec.Begin(0, history.SetOp[string]{Add: true, Element: x}).End(history.SetResult[string]{})
	}
	read := func(elements ...string) {
		rec.Begin(1, history.SetOp[string]{}).End(history.SetResult[string]{Elements: elements})
	}
	add("apple")
	add("pear")
	read("pear")
	read("pear", "apple")
	read("apple")
	report := history.Set(rec.Operations())
	fmt.Println("lost", report.Lost, "stale", report.Stale)
	// Output: lost [pear] stale [apple]
}
