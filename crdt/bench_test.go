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

// places returns 64 new elements spread over a set of n, so that the benchmark includes node splits
// at their natural frequency.
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
		for name, o := range map[string]crdt.ORSet[string]{"equal-shared": s, "equal-apart": apart,
			"one-ahead": ahead} {
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
		var d crdt.Delta
		b.ReportAllocs()
		for b.Loop() {
			next := m
			var err error
			d, err = crdt.Update(alice, &next, setKey(key))
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(deltaBytes(b, d))), "wire-bytes/update")
	})
}

func setKey(key string) func(*crdt.Writer, *crdt.LWWMap[string, int64]) error {
	return func(w *crdt.Writer, m *crdt.LWWMap[string, int64]) error {
		m.Set(w, key, 7)
		return nil
	}
}

// voted returns a map of n keys with counters, each counted by three replicas.
func voted(n int) (m crdt.PNCounterMap[string], alice *crdt.Replica) {
	rs := []*crdt.Replica{crdt.NewReplica(1), crdt.NewReplica(2), crdt.NewReplica(3)}
	for i := range n {
		for _, r := range rs {
			m.Add(r.Writer(), element(i), 1)
		}
	}
	return m, rs[0]
}

func BenchmarkPNCounterMapAddToOneKey(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		m, alice := voted(n)
		key := element(n / 2)
		var d crdt.Delta
		b.ReportAllocs()
		for b.Loop() {
			next := m
			var err error
			d, err = crdt.Update(alice, &next,
				func(w *crdt.Writer, m *crdt.PNCounterMap[string]) error {
					m.Add(w, key, 1)
					return nil
				})
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(deltaBytes(b, d))), "wire-bytes/update")
	})
}

func BenchmarkMapLen(b *testing.B) {
	sizes(b, func(b *testing.B, n int) {
		m, _ := voted(n)
		b.ReportAllocs()
		for b.Loop() {
			if m.Len() != n {
				b.Fatal(m.Len())
			}
		}
	})
}

// oneSlot returns a counter of n replicas, and the delta of one more increment.
func oneSlot(b testing.TB, n int) (c crdt.GCounter, d crdt.Delta, ahead crdt.GCounter) {
	var last *crdt.Replica
	for i := range n {
		last = crdt.NewReplica(crdt.ReplicaID(i + 1))
		c.Add(last.Writer(), 5)
	}
	ahead = c
	d, err := crdt.Update(last, &ahead, func(w *crdt.Writer, c *crdt.GCounter) error {
		c.Add(w, 1)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return c, d, ahead
}

func BenchmarkGCounterMergeOneSlot(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		c, d, ahead := oneSlot(b, n)
		b.Run(fmt.Sprintf("delta/replicas=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				v := c
				if err := crdt.Apply(&v, d); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("state/replicas=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Merge(ahead)
			}
		})
	}
}

func numbered(i int) string  { return fmt.Sprintf("elem%06d", i) }
func scattered(i int) string { return fmt.Sprintf("%010x", uint64(i)*0x9e3779b97f4a7c15>>24) }

// tenBytes returns a set of n strings of ten bytes.
func tenBytes(n int, name func(int) string) crdt.ORSet[string] {
	var s crdt.ORSet[string]
	rs := []*crdt.Replica{crdt.NewReplica(1 << 60), crdt.NewReplica(1 << 61),
		crdt.NewReplica(1 << 62)}
	for i := range n {
		s.Add(rs[i%3].Writer(), name(i))
	}
	return s
}

// large runs a benchmark for a set of 100,000 strings of ten bytes.
func large(b *testing.B, run func(b *testing.B, s crdt.ORSet[string])) {
	for name, f := range map[string]func(int) string{"numbered": numbered, "scattered": scattered} {
		b.Run(name, func(b *testing.B) { run(b, tenBytes(100_000, f)) })
	}
}

func BenchmarkORSetEncode100k(b *testing.B) {
	large(b, func(b *testing.B, s crdt.ORSet[string]) {
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = s.AppendBinary(buf[:0])
		}
		b.ReportMetric(float64(len(buf)), "wire-bytes")
	})
}

func BenchmarkORSetDecode100k(b *testing.B) {
	large(b, func(b *testing.B, s crdt.ORSet[string]) {
		src := []byte(encode(b, s))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Decode(src); err != nil {
				b.Fatal(err)
			}
		}
	})
}
