package crdt_test

import (
	"fmt"
	"testing"

	"github.com/concord-go/concord/crdt"
)

func element(i int) string { return fmt.Sprintf("element-%06d", i) }

// filled returns a set of n elements by replicas 1 to 3.
func filled(n int) (s crdt.ORSet[string], alice *crdt.Replica) {
	rs := []*crdt.Replica{crdt.NewReplica(1), crdt.NewReplica(2), crdt.NewReplica(3)}
	for i := range n {
		s.Add(rs[i%3].Writer(), element(i))
	}
	return s, rs[0]
}

func sizes(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range []int{10, 1_000, 10_000} {
		b.Run(fmt.Sprintf("elems=%d", n), func(b *testing.B) { run(b, n) })
	}
}

// places returns 64 new elements spread over a set of n, so that a split of a node counts as often as
// it happens.
func places(n int) (out []string) {
	for i := range 64 {
		out = append(out, element(i*n/64)+"+")
	}
	return out
}

func addOne(e string) func(*crdt.Writer, *crdt.ORSet[string]) error {
	return func(w *crdt.Writer, v *crdt.ORSet[string]) error {
		v.Add(w, e)
		return nil
	}
}

func BenchmarkORSetAddWithDelta(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s, alice := filled(n)
		at := places(n)
		var d crdt.Delta
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			next, e := s, at[i%64]
			var err error
			if d, err = crdt.Update(alice, &next, addOne(e)); err != nil || d.Empty() {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(deltaBytes(b, d))), "wire-bytes/update")
	})
}

func BenchmarkORSetAdd(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s, alice := filled(n)
		at := places(n)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			next := s
			next.Add(alice.Writer(), at[i%64])
		}
	})
}

func BenchmarkORSetContains(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s, _ := filled(n)
		e := element(n / 2)
		b.ReportAllocs()
		for b.Loop() {
			if !s.Contains(e) {
				b.Fatal()
			}
		}
	})
}

func BenchmarkORSetMerge(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s, alice := filled(n)
		apart, err := crdt.ORSet[string]{}.Decode([]byte(encode(b, s)))
		if err != nil {
			b.Fatal(err)
		}
		ahead := s
		ahead.Add(alice.Writer(), "new")
		for name, o := range map[string]crdt.ORSet[string]{"equal-shared": s, "equal-apart": apart, "one-ahead": ahead} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Merge(o)
				}
			})
		}
	})
}

func BenchmarkORSetApplyOneAdd(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s, alice := filled(n)
		var deltas []crdt.Delta
		for _, e := range places(n) {
			next := s
			d, err := crdt.Update(alice, &next, addOne(e))
			if err != nil {
				b.Fatal(err)
			}
			deltas = append(deltas, d)
		}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			v := s
			if err := crdt.Apply(&v, deltas[i%64]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkLWWMapSetOneKey(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		alice := crdt.NewReplica(1)
		var m crdt.LWWMap[string, int64]
		for i := range n {
			m.Set(alice.Writer(), element(i), int64(i))
		}
		key := element(n / 2)
		b.ReportAllocs()
		for b.Loop() {
			next := m
			_, err := crdt.Update(alice, &next, func(w *crdt.Writer, m *crdt.LWWMap[string, int64]) error {
				m.Set(w, key, 7)
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkPNCounterAdd(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("replicas=%d", n), func(b *testing.B) {
			var c crdt.PNCounter
			for i := range n {
				c.Add(crdt.NewReplica(crdt.ReplicaID(i+1)).Writer(), 1)
			}
			last := crdt.NewReplica(1 << 40)
			b.ReportAllocs()
			for b.Loop() {
				c.Add(last.Writer(), 1)
			}
		})
	}
}

func BenchmarkORSetEncode(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s, _ := filled(n)
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = s.AppendBinary(buf[:0])
		}
		b.ReportMetric(float64(len(buf))/float64(n), "wire-bytes/elem")
	})
}

func BenchmarkORSetDecode(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		s, _ := filled(n)
		src := []byte(encode(b, s))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Decode(src); err != nil {
				b.Fatal(err)
			}
		}
	})
}
