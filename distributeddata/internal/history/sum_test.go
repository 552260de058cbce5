package history

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
)

// xxHash, which fingerprints once used, cannot tell these two payloads apart: the second half
// undoes the difference that the first half made in one lane of its state. Anyone who chooses
// payloads can do this.
func TestFingerprint_ChosenPayloadsDiffer(t *testing.T) {
	const p1, p2 uint64 = 0x9e3779b185ebca87, 0xc2b2ae3d27d4eb4f
	key, path := "0123456789abcdef", "fedcba9876543210" // with the text before them, two blocks
	round := func(acc, in uint64) uint64 { return bits.RotateLeft64(acc+in*p2, 31) * p1 }
	inverse := uint64(1)
	for range 63 { // p2^(2^63-1), by the order of the group of odd numbers
		inverse = inverse * inverse * p2
	}
	start := p1
	start += p2
	acc := round(round(start, uint64(len(key))), binary.LittleEndian.Uint64([]byte(key)))
	payload := func(x, y uint64) string {
		b := make([]byte, 64)
		binary.LittleEndian.PutUint64(b, x)
		binary.LittleEndian.PutUint64(b[32:], y)
		return string(b)
	}
	a := payload(1, 0)
	b := payload(2, (round(acc, 1)-round(acc, 2))*inverse)
	old := func(p string) uint64 {
		h := newHash()
		for _, n := range []uint64{uint64(len(key)), uint64(len(path)), 7, 1} {
			h.number(n)
		}
		h.text(key)
		h.text(path)
		h.text(p)
		return h.Sum64()
	}
	require.NotEqual(t, a, b)
	require.Equal(t, old(a), old(b), "or this test shows nothing")
	sum := func(p string) Sum {
		return AtomSum(key, path, causal.Leaf{Dot: causal.Dot{Replica: 7, N: 1}, Payload: p})
	}
	require.NotEqual(t, sum(a), sum(b))
}

// Every part of an atom affects its hash, whichever way the atom is hashed.
func TestFingerprint_EachPartCounts(t *testing.T) {
	seen := map[Sum]string{}
	for _, size := range []int{0, 1, 100, maxCopied, 3 * maxCopied} {
		p := strings.Repeat("p", size)
		for i, s := range []Sum{
			AtomSum("k", "path", causal.Leaf{Dot: causal.Dot{Replica: 1, N: 1}, Payload: p}),
			AtomSum("kp", "ath", causal.Leaf{Dot: causal.Dot{Replica: 1, N: 1}, Payload: p}),
			AtomSum("k", "pat", causal.Leaf{Dot: causal.Dot{Replica: 1, N: 1}, Payload: "h" + p}),
			AtomSum("k", "path", causal.Leaf{Dot: causal.Dot{Replica: 2, N: 1}, Payload: p}),
			AtomSum("k", "path", causal.Leaf{Dot: causal.Dot{Replica: 1, N: 2}, Payload: p}),
		} {
			require.Empty(t, seen[s], "%d of %d", i, size)
			seen[s] = fmt.Sprint(i, size)
		}
	}
}

func BenchmarkFingerprint(b *testing.B) {
	for _, size := range []int{0, 100, 1000, 100_000} {
		l := causal.Leaf{Dot: causal.Dot{Replica: 7, N: 1}, Payload: strings.Repeat("p", size)}
		b.Run(fmt.Sprintf("payload=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				AtomSum("key-0000001", "element-00001", l)
			}
		})
	}
}

// Whatever a change leaves, the fingerprint is the sum of the atoms, and the size is theirs.
func TestFingerprint_OfChangedStores(t *testing.T) {
	for _, size := range []int{1, maxCopied, 20 * maxCopied} {
		for atoms := range 2 * few {
			var s causal.Store
			h := held("key", s, Held{})
			for n := uint64(1); n <= 40; n++ {
				path := fmt.Sprint("p", n*7%uint64(atoms+1))
				next := s
				if e, ok := s.Get(path); ok {
					next = next.Remove(path, e.First().Dot)
				}
				if n%5 > 0 {
					next = next.Insert(path, causal.Leaf{Dot: causal.Dot{Replica: 7, N: n},
						Payload: strings.Repeat("x", int(n)%3*size)})
				}
				h = held("key", next, h)
				s = next
				want := Held{Store: s}
				for p, e := range s.Prefix("") {
					want.sum = want.sum.Plus(entrySum("key", p, e))
					want.bytes += entryBytes(p, e)
				}
				require.Equal(t, want.sum, h.sum)
				require.Equal(t, want.bytes, h.bytes)
			}
		}
	}
}

// The value that a large one replaces is not hashed: its hash, wrong here, is not used.
func TestFingerprint_LargeValuesAreHashedOnce(t *testing.T) {
	leaf := func(n uint64, size int) causal.Leaf {
		return causal.Leaf{Dot: causal.Dot{Replica: 7, N: n}, Payload: strings.Repeat("x", size)}
	}
	old := causal.Store{}.Insert("p", leaf(1, 10_000))
	next := old.Remove("p", leaf(1, 0).Dot).Insert("p", leaf(2, 10_000))
	h := held("key", next, Held{Store: old, sum: Sum{1, 2}, bytes: 10_001})
	require.Equal(t, held("key", next, Held{}).sum, h.sum)
	require.Equal(t, 10_001, h.bytes)
}
