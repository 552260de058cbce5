// Command customcrdt shows user-defined replicated types made of the types of package crdt: a
// two-phase set, and a survey, which is a map of counters and registers. Neither contains merge
// logic: Merge, AppendBinary and Decode call those of the parts.
//
//	go run ./examples/customcrdt
//
// The tests check that both types obey the laws of replicated data, with package testkit/crdttest.
package main

import (
	"fmt"
	"log"

	"github.com/concord-go/concord/crdt"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)

	fmt.Println("A two-phase set: a removed name stays off the list, whatever is concurrent.")
	var a, b guests
	a.Add(alice.Writer(), "ann", "ben")
	b = b.Merge(a)
	b.Remove(bob.Writer(), "ben")
	a.Add(alice.Writer(), "ben", "cyd")
	fmt.Println("  alice", a, " bob", b)
	a, b = a.Merge(b), b.Merge(a)
	fmt.Println("  alice", a, " bob", b)

	fmt.Println("A survey: every vote counts, and of concurrent headlines the last one stands.")
	var mine, theirs survey
	vote := func(answer string) func(*crdt.Writer, *survey) error {
		return func(w *crdt.Writer, s *survey) error {
			s.Update(w, "lunch", func(q *question) { q.Vote(w, answer) })
			return nil
		}
	}
	for _, answer := range []string{"soup", "soup", "pie"} {
		if _, err := crdt.Update(alice, &mine, vote(answer)); err != nil {
			return err
		}
	}
	theirs = theirs.Merge(mine)
	delta, err := crdt.Update(bob, &theirs, func(w *crdt.Writer, s *survey) error {
		s.Update(w, "lunch", func(q *question) {
			q.Headline.Set(w, "What is for lunch?")
			q.Retract(w, "soup")
			q.Vote(w, "pie")
		})
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := crdt.Update(alice, &mine, vote("soup")); err != nil {
		return err
	}
	if err := crdt.Apply(&mine, delta); err != nil { // only bob's change, not his whole survey
		return err
	}
	fmt.Println("  alice", mine)
	fmt.Println("  bob  ", theirs.Merge(mine))
	return nil
}
