package crdt_test

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/crdt"
)

func Example() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)

	var a, b crdt.ORSet[string]
	a.Add(alice.Writer(), "milk", "bread")
	b = b.Merge(a)
	b.Remove(bob.Writer(), "milk")
	a.Add(alice.Writer(), "milk") // concurrent with the remove, which has not seen it

	a, b = a.Merge(b), b.Merge(a)
	fmt.Println(a, b)
	// Output: {bread milk} {bread milk}
}

func ExampleUpdate() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.PNCounter
	add := func(n int64) func(*crdt.Writer, *crdt.PNCounter) error {
		return func(w *crdt.Writer, c *crdt.PNCounter) error { c.Add(w, n); return nil }
	}
	first, _ := crdt.Update(alice, &a, add(5))
	second, _ := crdt.Update(alice, &a, add(-2))
	_, _ = crdt.Update(bob, &b, add(10))

	err := crdt.Apply(&b, second) // too early
	fmt.Println(errors.Is(err, crdt.ErrGap), b)
	for _, d := range []crdt.Delta{first, second, second} {
		err = crdt.Apply(&b, d)
	}
	fmt.Println(err, b)
	// Output:
	// true 10
	// <nil> 13
}

func ExampleGCounter() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.GCounter
	a.Add(alice.Writer(), 3)
	b.Add(bob.Writer(), 4)
	a = a.Merge(b).Merge(b) // once is enough, twice does no harm
	fmt.Println(a.Value())
	// Output: 7
}

func ExampleORSet_Diff() {
	alice := crdt.NewReplica(1)
	var s crdt.ORSet[int]
	s.Add(alice.Writer(), 1, 2, 3)
	old := s // a snapshot
	s.Add(alice.Writer(), 4)
	s.Remove(alice.Writer(), 2)
	added, removed := s.Diff(old)
	for e := range added {
		fmt.Println("+", e)
	}
	for e := range removed {
		fmt.Println("-", e)
	}
	// Output:
	// + 4
	// - 2
}

func ExampleLWWRegister() {
	// Bob's clock is ahead, so his write wins over concurrent writes. But a write always wins over
	// the writes it has seen.
	alice := crdt.NewReplicaWithClock(1, func() uint64 { return 1000 })
	bob := crdt.NewReplicaWithClock(2, func() uint64 { return 5000 })
	var a, b crdt.LWWRegister[string]
	a.Set(alice.Writer(), "red")
	b.Set(bob.Writer(), "blue")
	a, b = a.Merge(b), b.Merge(a)
	fmt.Println(a, b)
	a.Set(alice.Writer(), "green")
	fmt.Println(a.Merge(b))
	// Output:
	// blue blue
	// green
}

func ExampleORMap() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.ORMap[string, crdt.PNCounter]
	add := func(m *crdt.ORMap[string, crdt.PNCounter], w *crdt.Writer, article string, n int64) {
		m.Update(w, article, func(c *crdt.PNCounter) { c.Add(w, n) })
	}
	add(&a, alice.Writer(), "bread", 100)
	b = b.Merge(a)
	b.Remove(bob.Writer(), "bread")     // removes the 100 it has seen
	add(&a, alice.Writer(), "bread", 1) // but not this one
	fmt.Println(a.Merge(b), b.Merge(a))
	// Output: {bread:1} {bread:1}
}

func ExampleLWWMap() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.LWWMap[string, int64]
	a.Set(alice.Writer(), "timeout", 30)
	b = b.Merge(a)
	b.Remove(bob.Writer(), "timeout")
	a.Set(alice.Writer(), "timeout", 60) // a concurrent write wins over the remove
	a.Set(alice.Writer(), "retries", 3)
	a = a.Merge(b)
	for key, n := range a.All() {
		fmt.Println(key, n)
	}
	// Output:
	// retries 3
	// timeout 60
}

func ExampleJSON() {
	type point struct{ X, Y int }
	points := crdt.NewORSet(crdt.JSON[point]())
	points.Add(crdt.NewReplica(1).Writer(), point{1, 2}, point{3, 4})
	fmt.Println(points.Contains(point{1, 2}), points.Len())
	// Output: true 2
}
