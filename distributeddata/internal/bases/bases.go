// Package bases holds the vectors that members name by their digests, so that other vectors are
// told as the few entries in which they differ [R37]. A base is a name and claims nothing: a vector
// is defined by its entries, with every base.
//
// A replica has a base of its own, with which it tells vectors, and knows some of others. It renews
// its own as replicas depart [R38], and fetches an unknown one in parts while the messages that
// name it wait [R39]. The package sends nothing and knows no members but by their names.
package bases

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// Base is a vector with its digest. The zero value is the empty vector, which needs no name.
type Base struct {
	digest causal.Digest
	vector causal.Vector
}

// Of returns the base of a vector.
func Of(v causal.Vector) Base { return Base{v.Digest(), v} }

// Named returns the base of a vector whose name is known to be right.
func Named(name []byte, v causal.Vector) Base {
	b := Base{vector: v}
	copy(b.digest[:], name)
	return b
}

// Vector returns the vector.
func (b Base) Vector() causal.Vector { return b.vector }

// Name returns the digest for use in messages; the empty vector has none.
func (b Base) Name() []byte {
	if b.vector.Len() == 0 {
		return nil
	}
	return b.digest[:]
}

// Is reports whether name is the digest of the base.
func (b Base) Is(name []byte) bool { return string(name) == string(b.digest[:]) }

// nameSize is the number of entries that take as much room in a message as the name of a base.
const nameSize = 3

// List returns the entries of v that differ from the base, or, without a name, all of v if that is
// shorter.
func (b Base) List(v causal.Vector) (name []byte, ids []causal.Replica, numbers []uint64) {
	if b.vector.Len() > 0 {
		most := v.Len() - nameSize
		for r, n := range v.Differing(b.vector) {
			if len(ids) >= most {
				ids = nil
				break
			}
			ids, numbers = append(ids, r), append(numbers, n[0])
		}
		if len(ids) > 0 || most > 0 && v.Equal(b.vector) {
			return b.Name(), ids, numbers
		}
	}
	ids, numbers = make([]causal.Replica, 0, v.Len()), make([]uint64, 0, v.Len())
	for d := range v.All() {
		ids, numbers = append(ids, d.Replica), append(numbers, d.N)
	}
	return nil, ids, numbers
}

// better reports whether b is preferable to o. The base with more entries is, so that members
// converge on one.
func (b Base) better(o Base) bool {
	if n, m := b.vector.Len(), o.vector.Len(); n != m {
		return n > m
	}
	return slices.Compare(b.digest[:], o.digest[:]) > 0
}

// Bounds.
const (
	Max     = 8           // bases that are known; beyond it the one named longest ago is dropped
	keep    = time.Minute // one that has not been named for so long is dropped
	Few     = 32          // a vector of up to so many replicas is told in full
	renewAt = 4           // departed replicas from which on they are taken into the base
	// MaxDiffering is the number of entries of a vector that fit into any message. With more
	// differences the base is renewed at once.
	MaxDiffering = 4096
)

// known is a base that messages may name.
type known struct {
	Base
	used time.Time // last time that a message named it
}

// Set is what a replica knows of bases. M are the messages that wait for one.
type Set[M any] struct {
	own   Base
	known []known
	fetch fetch
	wait  queue[M]
}

// Own returns the base with which this replica tells vectors.
func (s *Set[M]) Own() Base { return s.own }

// Find returns the vector with a name.
func (s *Set[M]) Find(now time.Time, name []byte) (causal.Vector, bool) {
	for i, k := range s.known {
		if k.Is(name) {
			s.known[i].used = now
			return k.vector, true
		}
	}
	return causal.Vector{}, false
}

// Len returns the number of bases that are known.
func (s *Set[M]) Len() int { return len(s.known) }

// names returns the names of the known bases.
func (s *Set[M]) names() (names [][]byte) {
	for _, k := range s.known {
		names = append(names, slices.Clone(k.digest[:]))
	}
	return names
}

// learn adds a base. Its vector shares memory with seen, if that covers it.
func (s *Set[M]) learn(now time.Time, b Base, seen causal.Vector) {
	if b.vector.Leq(seen) {
		b.vector = b.vector.Meet(seen)
	}
	if len(s.known) == Max {
		oldest := 0
		for i, k := range s.known {
			if k.digest != s.own.digest && (k.used.Before(s.known[oldest].used) ||
				s.known[oldest].digest == s.own.digest) {
				oldest = i
			}
		}
		s.known = slices.Delete(s.known, oldest, oldest+1)
	}
	s.known = append(s.known, known{b, now})
	s.prefer(seen)
}

// prefer goes over to the best base that is known and covered.
func (s *Set[M]) prefer(seen causal.Vector) {
	for _, k := range s.known {
		if k.better(s.own) && k.vector.Leq(seen) {
			s.own = k.Base
		}
	}
}

// Renew drops the bases that have not been named for long, and takes the replicas of seen that have
// departed into the own base once there are more than a few. Members that have seen the same events
// and have the same view agree on these, so they come to the same base.
func (s *Set[M]) Renew(now time.Time, seen causal.Vector, runs func(causal.Replica) bool) {
	s.known = slices.DeleteFunc(s.known, func(k known) bool {
		return k.digest != s.own.digest && now.Sub(k.used) > keep
	})
	s.prefer(seen)
	if seen.Len() <= Few {
		return
	}
	var gone []causal.Dot
	for d := range seen.Beyond(s.own.vector) {
		if !runs(d.Replica) {
			gone = append(gone, d)
		}
	}
	if len(gone) >= renewAt {
		s.Use(now, s.own.vector.Apply(gone), seen)
	}
}

// Risen renews the base at once if seen has risen far above it.
func (s *Set[M]) Risen(now time.Time, seen causal.Vector) {
	s.prefer(seen)
	differing := 0
	for range seen.Differing(s.own.vector) {
		if differing++; differing > MaxDiffering {
			s.Use(now, seen, seen)
			return
		}
	}
}

// Use makes v the own base.
func (s *Set[M]) Use(now time.Time, v, seen causal.Vector) {
	s.own = Of(v)
	if _, ok := s.Find(now, s.own.Name()); !ok {
		s.learn(now, s.own, seen)
	}
}

// Next returns the set with which the next incarnation of the process begins: nothing is being
// fetched.
func (s *Set[M]) Next() Set[M] { return Set[M]{own: s.own, known: slices.Clone(s.known)} }
