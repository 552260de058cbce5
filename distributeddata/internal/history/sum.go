package history

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/concord-go/concord/internal/causal"
)

// Sum is a fingerprint of a set of atoms: two sums modulo 2^64 of a cryptographic hash of each atom
// with its key, path, dot and payload [R26]. Updating it costs as much as the change. Equal states
// have equal fingerprints, whatever their history. Marks are bookkeeping and are not included.
type Sum [2]uint64

// Plus returns the fingerprint of the atoms of both.
func (s Sum) Plus(o Sum) Sum { return Sum{s[0] + o[0], s[1] + o[1]} }

// Minus returns the fingerprint without the atoms of o.
func (s Sum) Minus(o Sum) Sum { return Sum{s[0] - o[0], s[1] - o[1]} }

// Held is the content of one key at a replica.
type Held struct {
	causal.Store
	sum   Sum
	bytes int // of its atoms: paths and payloads
}

// Bytes returns the size of the atoms, which Config.Fits bounds.
func (h Held) Bytes() int { return h.bytes }

// held returns a store with its fingerprint, computed from that of the store before the change.
func held(key string, s causal.Store, before Held) Held {
	h := Held{s, before.sum, before.bytes}
	removed, added := 0, 0
	if before.bytes > maxCopied {
		causal.Differing(before.Store, s, func(path string, old causal.Entry, inOld bool,
			now causal.Entry, inNow bool) {
			if inOld {
				removed += entryBytes(path, old)
			}
			if inNow {
				added += entryBytes(path, now)
			}
		})
		h.bytes += added - removed
	}
	// Where a large value is replaced, hashing what remains is cheaper than hashing what was there:
	// the sum of a register is that of its only atom.
	if removed+added > h.bytes && s.Len() <= few {
		h.sum = Sum{}
		for path, e := range s.Prefix("") {
			h.sum = h.sum.Plus(entrySum(key, path, e))
		}
		return h
	}
	h.bytes = before.bytes
	causal.Differing(before.Store, s, func(path string, old causal.Entry, inOld bool,
		now causal.Entry, inNow bool) {
		if inOld {
			h.sum, h.bytes = h.sum.Minus(entrySum(key, path, old)), h.bytes-entryBytes(path, old)
		}
		if inNow {
			h.sum, h.bytes = h.sum.Plus(entrySum(key, path, now)), h.bytes+entryBytes(path, now)
		}
	})
	return h
}

func entryBytes(path string, e causal.Entry) (bytes int) {
	for l := range e.All() {
		bytes += atomBytes(path, l)
	}
	return bytes
}

// atomBytes is the size of an atom, without what it needs in memory or in a message beside its path
// and its payload.
func atomBytes(path string, l causal.Leaf) int { return len(path) + len(l.Payload) }

func entrySum(key, path string, e causal.Entry) (sum Sum) {
	for l := range e.All() {
		sum = sum.Plus(AtomSum(key, path, l))
	}
	return sum
}

// AtomSum returns the fingerprint of one atom: half of its SHA-256. With a hash that is merely well
// mixed, a user who chooses payloads could make two values with one fingerprint, and a comparison
// of keys would not tell them apart [R26].
func AtomSum(key, path string, l causal.Leaf) Sum {
	var room [maxCopied]byte
	b := room[:0]
	for _, n := range [...]uint64{uint64(len(key)), uint64(len(path)), uint64(l.Replica), l.N} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	var d [sha256.Size]byte
	if len(b)+len(key)+len(path)+len(l.Payload) <= maxCopied {
		d = sha256.Sum256(append(append(append(b, key...), path...), l.Payload...))
	} else {
		h := sha256.New()
		_, _ = h.Write(b) // cannot fail
		for _, s := range [...]string{key, path, l.Payload} {
			for len(s) > 0 {
				n := copy(room[:], s)
				_, _ = h.Write(room[:n])
				s = s[n:]
			}
		}
		h.Sum(d[:0])
	}
	return Sum{binary.LittleEndian.Uint64(d[:]), binary.LittleEndian.Uint64(d[8:])}
}

// maxCopied is the largest atom that is assembled to be hashed in one call.
const maxCopied = 512

// hash is an xxHash, equal on every node.
type hash struct{ xxhash.Digest }

func newHash() (h hash) {
	h.Reset()
	return h
}

func (h *hash) number(v uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	_, _ = h.Write(b[:]) // cannot fail
}

func (h *hash) text(s string) { _, _ = h.WriteString(s) }
