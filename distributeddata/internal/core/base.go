package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// base is a vector that members know by its digest [R37]. Other vectors are sent as the differences
// from it. The zero value is the empty vector, which needs no name.
type base struct {
	digest causal.Digest
	vector causal.Vector
}

func baseOf(v causal.Vector) base { return base{v.Digest(), v} }

// name returns the digest for use in messages.
func (b base) name() []byte {
	if b.vector.Len() == 0 {
		return nil
	}
	return b.digest[:]
}

// list returns the entries of v that differ from the base, or, without a name, all of v if that is
// shorter.
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

// nameSize is the number of entries that take as much room in a message as the name of a base.
const nameSize = 3

// better reports whether b is preferable to o. The base with more entries is, so that members
// converge on one [R38].
func (b base) better(o base) bool {
	if n, m := b.vector.Len(), o.vector.Len(); n != m {
		return n > m
	}
	return slices.Compare(b.digest[:], o.digest[:]) > 0
}

// known is a base that messages may name.
type known struct {
	base
	used time.Time // last time that a message named it
}

// Bounds on the bases that are kept. A base that has not been named for keepBases is dropped.
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

// learn adds a base. Its vector shares memory with the seen vector.
func (c *Core) learn(b base) {
	if b.vector.Leq(c.seen) {
		b.vector = b.vector.Meet(c.seen)
	}
	if len(c.bases) == maxBases {
		oldest := 0
		for i, k := range c.bases {
			if k.digest != c.base.digest && (k.used.Before(c.bases[oldest].used) ||
				c.bases[oldest].digest == c.base.digest) {
				oldest = i
			}
		}
		c.bases = slices.Delete(c.bases, oldest, oldest+1)
	}
	c.bases = append(c.bases, known{b, c.now})
	c.preferBase()
}

// preferBase switches to the best base that is known and covered.
func (c *Core) preferBase() {
	for _, k := range c.bases {
		if k.better(c.base) && k.vector.Leq(c.seen) {
			c.base = k.base
		}
	}
}

// renewBase adds departed replicas to the base once there are more than a few [R38]. Members that
// have seen the same events and have the same view agree on the departed replicas, so they reach
// the same base.
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

// jump is called when the vector has risen by more than a push.
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

// useBase switches to a base.
func (c *Core) useBase(v causal.Vector) {
	c.base = baseOf(v)
	if _, ok := c.known(c.base.name()); !ok {
		c.learn(c.base)
	}
}

const (
	fewReplicas = 32 // vectors of up to so many replicas are sent in full
	renewAfter  = 4
	// maxDifferences is the number of entries of a vector that fit into any message. With more
	// differences the base is renewed at once.
	maxDifferences = 4096
)
