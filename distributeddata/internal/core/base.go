package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// base is a vector that members know by its digest [R40]. Other vectors are told as what differs from
// it. The zero value is the vector that covers nothing, which needs no name.
type base struct {
	digest causal.Digest
	vector causal.Vector
}

func baseOf(v causal.Vector) base { return base{v.Digest(), v} }

// name returns the digest as messages carry it.
func (b base) name() []byte {
	if b.vector.Len() == 0 {
		return nil
	}
	return b.digest[:]
}

// list returns what of v differs from the base, or, without a name, all of v if that is shorter.
func (b base) list(v causal.Vector) (name []byte, ids []causal.Replica, numbers []uint64) {
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
			return b.name(), ids, numbers
		}
	}
	ids, numbers = make([]causal.Replica, 0, v.Len()), make([]uint64, 0, v.Len())
	for d := range v.All() {
		ids, numbers = append(ids, d.Replica), append(numbers, d.N)
	}
	return nil, ids, numbers
}

// nameSize is how many entries take as much room in a message as the name of a base.
const nameSize = 3

// better reports whether the base is to be preferred: the one with more entries is, so that members
// come to use the same [R41].
func (b base) better(o base) bool {
	if n, m := b.vector.Len(), o.vector.Len(); n != m {
		return n > m
	}
	return slices.Compare(b.digest[:], o.digest[:]) > 0
}

// known is a base that messages may name.
type known struct {
	base
	used time.Time // by a message, at last
}

// Bounds of what is kept of bases: of those that nothing names any more for a while, none.
const (
	maxBases  = 8
	keepBases = time.Minute
)

// known returns the vector with a name.
func (c *Core) known(name []byte) (causal.Vector, bool) {
	for i, k := range c.bases {
		if string(k.digest[:]) == string(name) {
			c.bases[i].used = c.now
			return k.vector, true
		}
	}
	return causal.Vector{}, false
}

// learn takes a base in. It shares what it is made of with what has been seen.
func (c *Core) learn(b base) {
	if b.vector.Leq(c.seen) {
		b.vector = b.vector.Meet(c.seen)
	}
	if len(c.bases) == maxBases {
		oldest := 0
		for i, k := range c.bases {
			if k.digest != c.base.digest && (k.used.Before(c.bases[oldest].used) || c.bases[oldest].digest == c.base.digest) {
				oldest = i
			}
		}
		c.bases = slices.Delete(c.bases, oldest, oldest+1)
	}
	c.bases = append(c.bases, known{b, c.now})
	c.preferBase()
}

// preferBase goes over to the best base that is known and covered.
func (c *Core) preferBase() {
	for _, k := range c.bases {
		if k.better(c.base) && k.vector.Leq(c.seen) {
			c.base = k.base
		}
	}
}

// renewBase takes replicas that have gone into the base, once they are more than a few [R41]. What is gone is
// equal for all who have seen the same and have the same view, so they come to the same base.
func (c *Core) renewBase() {
	c.bases = slices.DeleteFunc(c.bases, func(k known) bool {
		return k.digest != c.base.digest && c.now.Sub(k.used) > keepBases
	})
	c.preferBase()
	if c.seen.Len() <= fewReplicas {
		return
	}
	var gone []causal.Dot
	runs := c.running()
	for d := range c.seen.Beyond(c.base.vector) {
		if !runs[d.Replica] {
			gone = append(gone, d)
		}
	}
	if len(gone) >= renewAfter {
		c.useBase(c.base.vector.Apply(gone))
	}
}

// jump follows a rise of the vector by more than a push.
func (c *Core) jump() {
	c.preferBase()
	differing := 0
	for range c.seen.Differing(c.base.vector) {
		if differing++; differing > maxDifferences {
			c.useBase(c.seen)
			return
		}
	}
}

// useBase goes over to a base.
func (c *Core) useBase(v causal.Vector) {
	c.base = baseOf(v)
	if _, ok := c.known(c.base.name()); !ok {
		c.learn(c.base)
	}
}

const (
	fewReplicas = 32 // up to so many a vector is told whole
	renewAfter  = 4
	// maxDifferences is how many entries of a vector fit into any message: at more the base is renewed at once,
	// whoever has gone.
	maxDifferences = 4096
)
