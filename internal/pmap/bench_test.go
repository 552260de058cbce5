package pmap

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// dot stands for a typical value: 16 bytes without pointers.
type dot struct{ replica, counter uint64 }

// benchKeys returns n ascending keys of ten random bytes, and others between them.
func benchKeys(n int) (keys, others []string) {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	draw := func() string {
		b := binary.BigEndian.AppendUint64(nil, r.Uint64())
		return string(binary.BigEndian.AppendUint16(b, uint16(r.Uint32())))
	}
	for range n {
		keys = append(keys, draw())
	}
	for range 1024 {
		others = append(others, draw())
	}
	slices.Sort(keys)
	return slices.Compact(keys), others
}

func benchMap(keys []string) Map[dot] {
	var b Builder[dot]
	for i, k := range keys {
		b.Add([]byte(k), dot{1, uint64(i)})
	}
	return b.Map()
}

// benchSizes runs f with maps of several sizes, with keys in the map and keys not in it.
func benchSizes(b *testing.B, f func(b *testing.B, m Map[dot], keys, others []string)) {
	for _, n := range []int{10, 1000, 10000, 100000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			keys, others := benchKeys(n)
			m := benchMap(keys)
			b.ReportAllocs()
			f(b, m, keys, others)
		})
	}
}

func BenchmarkPut(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Map[dot], _, others []string) {
		for i := 0; b.Loop(); i++ {
			m.Put(others[i%len(others)], dot{2, 1})
		}
	})
}

func BenchmarkReplace(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Map[dot], keys, _ []string) {
		for i := 0; b.Loop(); i++ {
			m.Put(keys[i*7919%len(keys)], dot{2, 1})
		}
	})
}

func BenchmarkDelete(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Map[dot], keys, _ []string) {
		for i := 0; b.Loop(); i++ {
			m.Delete(keys[i*7919%len(keys)])
		}
	})
}

func BenchmarkGet(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Map[dot], keys, _ []string) {
		for i := 0; b.Loop(); i++ {
			m.Get(keys[i*7919%len(keys)])
		}
	})
}

func BenchmarkAll(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Map[dot], _, _ []string) {
		for b.Loop() {
			for range m.All() {
			}
		}
	})
}

func BenchmarkCountPrefix(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Map[dot], keys, _ []string) {
		for i := 0; b.Loop(); i++ {
			m.CountPrefix(keys[i*7919%len(keys)][:1])
		}
	})
}

func BenchmarkDeletePrefix(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Map[dot], keys, _ []string) {
		for i := 0; b.Loop(); i++ {
			m.DeletePrefix(keys[i*7919%len(keys)][:1])
		}
	})
}

func BenchmarkDiffOneChange(b *testing.B) {
	benchSizes(b, func(b *testing.B, m Map[dot], keys, _ []string) {
		o := m.Put(keys[len(keys)/2], dot{2, 1})
		found := 0
		for b.Loop() {
			Diff(m, o, func(x, y dot) bool {
				return x == y
			}, func(string, dot, bool, dot, bool) bool {
				found++
				return true
			})
		}
		if found != b.N {
			b.Fatal("differences", found)
		}
	})
}

func BenchmarkBuilder(b *testing.B) {
	benchSizes(b, func(b *testing.B, _ Map[dot], keys, _ []string) {
		var raw [][]byte
		for _, k := range keys {
			raw = append(raw, []byte(k))
		}
		for b.Loop() {
			var build Builder[dot]
			for _, k := range raw {
				build.Add(k, dot{1, 1})
			}
			build.Map()
		}
	})
}
