package core

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/concord-go/concord/internal/causal"
)

// Sum is a fingerprint of a set of atoms: two sums modulo 2^64 of a cryptographic hash of each atom with its key,
// path, dot and payload [R25]. It follows every change at the cost of the change, and equal states have equal
// fingerprints, whatever their history. Marks are bookkeeping and not in it.
type Sum [2]uint64

func (s Sum) plus(o Sum) Sum  { return Sum{s[0] + o[0], s[1] + o[1]} }
func (s Sum) minus(o Sum) Sum { return Sum{s[0] - o[0], s[1] - o[1]} }

// Held is what a replica holds under one key.
type Held struct {
	causal.Store
	sum Sum
}

// held returns a store with its fingerprint, which is known if the store is a change of another.
func held(key string, s causal.Store, before Held) Held {
	sum := before.sum
	causal.Differing(before.Store, s, func(path string, old causal.Entry, inOld bool, now causal.Entry, inNow bool) {
		if inOld {
			sum = sum.minus(entrySum(key, path, old))
		}
		if inNow {
			sum = sum.plus(entrySum(key, path, now))
		}
	})
	return Held{s, sum}
}

func entrySum(key, path string, e causal.Entry) (sum Sum) {
	for l := range e.All() {
		sum = sum.plus(atomSum(key, path, l))
	}
	return sum
}

// atomSum is the fingerprint of one atom: half of its SHA-256. A hash that is merely well mixed would let a
// user who chooses payloads make two values with one fingerprint, of which a comparison of keys keeps either [R25].
func atomSum(key, path string, l causal.Leaf) Sum {
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

// maxCopied is how much of an atom is put together to be hashed in one call.
const maxCopied = 512

// symbol stands for a key and what is under it, in a sketch.
func (h Held) symbol(key string) uint64 {
	x := newHash()
	x.number(h.sum[0])
	x.number(h.sum[1])
	x.text(key)
	return x.Sum64()
}

// digest is a hash of a vector, and not zero.
func digest(v causal.Vector) uint64 { return v.Hash() | 1 }

// hash is xxHash of what is put into it, equal on every node.
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

// scrub is how far the recomputing of fingerprints has come.
type scrub struct {
	key  string // being recomputed, or the one before the next
	held Held   // as it was at the beginning
	path string // to go on from; "" before the first
	sum  Sum    // of the atoms before path
}

// scrub recomputes the fingerprints of a part of the state at each heartbeat, and so finds what has
// rotted in memory. From then on this replica tells its true fingerprint, and the others will notice.
// A key with many atoms takes several heartbeats; changes in between do not matter, since it is
// the state of the beginning that is looked at.
func (c *Core) scrubSome() {
	s := &c.scrub
	for left := scrubSize; left > 0; {
		if s.path == "" && !s.next(c.keys) {
			return
		}
		path := s.path
		s.path = ""
		for p, e := range s.held.From(path) {
			if left <= 0 {
				s.path = causal.Clone(p)
				return
			}
			s.sum = s.sum.plus(entrySum(s.key, p, e))
			left -= 64 + len(p) + len(e.First().Payload)
		}
		left -= 64
		c.scrubbed()
	}
}

// next goes to the next key, and reports whether there is one; if not, the next round begins.
func (s *scrub) next(keys Keys) bool {
	from := s.key
	if from != "" {
		from += "\x00"
	}
	for key, h := range keys.From(from) {
		*s = scrub{key: causal.Clone(key), held: h}
		return true
	}
	*s = scrub{}
	return false
}

// scrubbed compares what was recomputed with what was said.
func (c *Core) scrubbed() {
	s := &c.scrub
	if s.sum == s.held.sum {
		return
	}
	c.stats.Rotten++
	wrong := s.sum.minus(s.held.sum) // so much, whatever has changed since
	c.correct(s.key, wrong)
}

// scrubSize is how much of the state is looked at with each heartbeat, roughly in bytes.
const scrubSize = 128 << 10
