package crdt_test

import (
	"fmt"
	"testing"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/causal"
)

// These benchmarks repeat those of Akka and Pekko for sets and vectors. lab/bench/pekko has the
// same cases for Pekko; make bench-pekko runs both.

// filledBy returns n elements added by five replicas in turn, and the replicas.
func filledBy(n int) (s crdt.ORSet[string], at [5]*crdt.Replica) {
	for i := range at {
		at[i] = crdt.NewReplica(crdt.ReplicaID(i + 1))
	}
	for i := range n {
		s.Add(at[i%5].Writer(), fmt.Sprint("elem", i+1))
	}
	return s, at
}

// after returns s after the changes, each made with its own writer.
func after(s crdt.ORSet[string], changes ...func(s *crdt.ORSet[string])) crdt.ORSet[string] {
	for _, change := range changes {
		change(&s)
	}
	return s
}

func BenchmarkPeers_ORSetMerge(b *testing.B) {
	for _, n := range []int{1, 10, 20, 100, 1000} {
		base, at := filledBy(n)
		add := func(r int, e string) func(*crdt.ORSet[string]) {
			return func(s *crdt.ORSet[string]) { s.Add(at[r].Writer(), e) }
		}
		first, second := after(base, add(0, "first")), after(base, add(1, "second"))
		decoded, err := second.Decode([]byte(encode(b, second)))
		if err != nil {
			b.Fatal(err)
		}
		left := after(base, add(1, "a"), add(2, "b"), func(s *crdt.ORSet[string]) {
			s.Remove(at[3].Writer(), fmt.Sprint("elem", n))
		})
		right := after(base, add(0, "a"), add(0, "c"), add(1, "d"))
		for _, c := range []struct {
			name  string
			merge func() crdt.ORSet[string]
		}{
			{"sameNode", func() crdt.ORSet[string] {
				s := base
				s.Add(at[0].Writer(), "x")
				s.Add(at[0].Writer(), "y")
				return base.Merge(s)
			}},
			{"otherNode", func() crdt.ORSet[string] { return base.Merge(second) }},
			{"bothNodes", func() crdt.ORSet[string] { return first.Merge(second) }},
			{"bothDecoded", func() crdt.ORSet[string] { return first.Merge(decoded) }},
			{"complex", func() crdt.ORSet[string] { return left.Merge(right) }},
		} {
			b.Run(fmt.Sprintf("%s/elems=%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if c.merge().Len() < n {
						b.Fatal("elements lost")
					}
				}
			})
		}
	}
}

func BenchmarkPeers_VersionVector(b *testing.B) {
	for _, n := range []int{1, 2, 5} {
		next := func(v causal.Vector, i int) causal.Vector {
			r := causal.Replica(i%5 + 1)
			return v.With(causal.Dot{Replica: r, N: v.Get(r) + 1})
		}
		var base, same causal.Vector // equal, but built separately
		for i := range n {
			base, same = next(base, i), next(same, i)
		}
		left, right := next(base, n), next(base, n+1)
		one := next(causal.Vector{}, 0)
		for _, c := range []struct {
			name string
			run  func()
		}{
			{"increment", func() { next(base, 0) }},
			{"compareSame", func() { base.Equal(same) }},
			{"compareAfter", func() { one.Before(left) }},
			{"merge", func() { base.Join(left) }},
			{"mergeConcurrent", func() { left.Join(right) }},
		} {
			b.Run(fmt.Sprintf("%s/replicas=%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					c.run()
				}
			})
		}
	}
}
