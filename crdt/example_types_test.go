package crdt_test

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/crdt"
)

func ExamplePNCounter() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.PNCounter
	a.Add(alice.Writer(), 5)
	b = b.Merge(a)
	b.Reset(bob.Writer())     // removes the 5 it has seen
	a.Add(alice.Writer(), -2) // but not this
	fmt.Println(a.Merge(b), b.Merge(a))
	// Output: -2 -2
}

func ExampleGSet() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.GSet[string]
	a.Add(alice.Writer(), "ada", "bob")
	b.Add(bob.Writer(), "bob", "cyd")
	fmt.Println(a.Merge(b), b.Merge(a))
	// Output: {ada bob cyd} {ada bob cyd}
}

func ExampleRWSet() {
	// One history gives two results: a permission is revoked while another replica grants it again.
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.RWSet[string]
	var c, d crdt.ORSet[string]
	a.Add(alice.Writer(), "write")
	c.Add(alice.Writer(), "write")
	b, d = b.Merge(a), d.Merge(c)

	b.Remove(bob.Writer(), "write")
	d.Remove(bob.Writer(), "write")
	a.Add(alice.Writer(), "write")
	c.Add(alice.Writer(), "write")

	fmt.Println("remove wins:", a.Merge(b), " add wins:", c.Merge(d))
	// Output: remove wins: {}  add wins: {write}
}

func ExampleMVRegister() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.MVRegister[string]
	a.Set(alice.Writer(), "red")
	b.Set(bob.Writer(), "blue")
	a, b = a.Merge(b), b.Merge(a)
	fmt.Println(a, b)
	a.Set(alice.Writer(), "violet") // has seen both
	fmt.Println(b.Merge(a))
	// Output:
	// {blue red} {blue red}
	// {violet}
}

func ExampleEWFlag() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.EWFlag
	a.Enable(alice.Writer())
	b = b.Merge(a)
	b.Disable(bob.Writer())
	a.Enable(alice.Writer()) // concurrent: on wins
	fmt.Println(a.Merge(b), b.Merge(a))
	// Output: true true
}

func ExampleDWFlag() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.DWFlag
	a.Enable(alice.Writer())
	b = b.Merge(a)
	b.Disable(bob.Writer())
	a.Enable(alice.Writer()) // concurrent: off wins
	a = a.Merge(b)
	fmt.Println(a)
	a.Enable(alice.Writer()) // has seen the disable
	fmt.Println(b.Merge(a))
	// Output:
	// false
	// true
}

func ExampleMaxRegister() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.MaxRegister[float64]
	a.Set(alice.Writer(), 21.5)
	b.Set(bob.Writer(), 23)
	b.Set(bob.Writer(), 19)
	fmt.Println(a.Merge(b), b.Merge(a))
	// Output: 23 23
}

func ExampleMinRegister() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.MinRegister[int]
	a.Set(alice.Writer(), 210)
	b.Set(bob.Writer(), 195)
	fmt.Println(a.Merge(b), b.Merge(a))
	// Output: 195 195
}

func ExampleBoundedCounter() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.BoundedCounter
	a.Add(alice.Writer(), 3) // three seats, all held by alice
	b = b.Merge(a)

	_, err := crdt.Update(bob, &b, func(w *crdt.Writer, c *crdt.BoundedCounter) error {
		c.Sub(w, 1)
		return nil
	})
	fmt.Println(errors.Is(err, crdt.ErrBounds), b)

	a.Transfer(alice.Writer(), bob.ID(), 1)
	b = b.Merge(a)
	b.Sub(bob.Writer(), 1) // both without asking each other
	a.Sub(alice.Writer(), 2)
	fmt.Println(a.Merge(b), b.Merge(a))
	// Output:
	// true 3
	// 0 0
}

func ExampleLWWRegister_SetFirst() {
	// Who came first? Bob's clock is earlier.
	alice := crdt.NewReplicaWithClock(1, func() uint64 { return 5000 })
	bob := crdt.NewReplicaWithClock(2, func() uint64 { return 1000 })
	var a, b crdt.LWWRegister[string]
	fmt.Println(a.SetFirst(alice.Writer(), "alice"), b.SetFirst(bob.Writer(), "bob"))
	a, b = a.Merge(b), b.Merge(a)
	fmt.Println(a, b, a.SetFirst(alice.Writer(), "alice"))
	// Output:
	// true true
	// bob bob false
}

func ExampleORMultiMap() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.ORMultiMap[string, string]
	a.Add(alice.Writer(), "fruit", "apple", "pear")
	b = b.Merge(a)
	b.RemoveKeys(bob.Writer(), "fruit")      // removes apple and pear
	a.Add(alice.Writer(), "fruit", "quince") // but not the quince
	a = a.Merge(b)
	for key, e := range a.All() {
		fmt.Println(key, e)
	}
	// Output: fruit quince
}

func ExamplePNCounterMap() {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.PNCounterMap[string]
	a.Add(alice.Writer(), "bread", 100)
	b.Add(bob.Writer(), "bread", -3)
	b.Add(bob.Writer(), "milk", 7)
	a = a.Merge(b)
	fmt.Println(a, a.Get("bread"), a.Get("none"))
	// Output: {bread:97 milk:7} 97 0
}
