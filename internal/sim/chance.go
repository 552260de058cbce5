package sim

import (
	"hash/fnv"
	"time"
)

// Number returns a random number from lo to hi. name identifies the choice and must be one word.
// The number depends only on the seed, the name, the time, and the number of earlier choices with
// that name at the same time.
//
// The same holds for Span and Chance. In a saved case every random choice is lo, or false, unless
// the case specifies it, so lo should be the harmless choice.
func (w *World) Number(name string, lo, hi int) int {
	return int(w.pick(name, int64(lo), int64(hi), numeral))
}

// Span returns a random duration from lo to hi, in whole microseconds above lo.
func (w *World) Span(name string, lo, hi time.Duration) time.Duration {
	return time.Duration(w.pick(name, int64(lo), int64(hi), duration))
}

// Chance returns true with probability p, and always false after Calm.
func (w *World) Chance(name string, p float64) bool {
	id := w.pickID(name)
	if w.calm {
		return false
	}
	var yes bool
	switch {
	case w.branch != nil:
		yes = p > 0 && w.branch.choose(2) == 1
	case w.given != nil:
		v, ok := w.given.picks[id]
		yes = ok && v.value != 0
	default:
		yes = unit(w.chance(id)) < p
	}
	if yes && w.tape != nil {
		w.tape.picks[id] = pick{truth, 1}
	}
	return yes
}

// Fraction returns a probability below most for half of the seeds, and zero for the other half: if
// all faults were always enabled, some would hide the effects of others.
func (w *World) Fraction(name string, most float64) float64 {
	return float64(max(0, w.Number(name, -1000, 1000))) / 1000 * most
}

func (w *World) pick(name string, lo, hi int64, as pickKind) int64 {
	id := w.pickID(name)
	v := lo
	switch {
	case w.branch != nil:
		if !w.calm {
			v = w.branch.pick(lo, hi, as)
		}
	case w.given == nil:
		v = lo + below(w.chance(id), hi-lo, as)
	default:
		if p, ok := w.given.picks[id]; ok {
			if v = p.value; v < lo || v > hi {
				w.Fail("pick %v is %v, must be from %v to %v", id, pick{as, v}, pick{as, lo},
					pick{as, hi})
				return lo
			}
		}
	}
	if v != lo && w.tape != nil {
		w.tape.picks[id] = pick{as, v}
	}
	return v
}

func (w *World) pickID(name string) pickID {
	m := w.picks[name]
	if m == nil {
		m = &moments{}
		w.picks[name] = m
	}
	return pickID{name, m.next(w.now)}
}

func (w *World) chance(id pickID) uint64 {
	return mix(w.seed, nameHash(id.name), uint64(id.at), uint64(id.n))
}

func below(x uint64, most int64, as pickKind) int64 {
	v, us := int64(x>>1), int64(time.Microsecond)
	switch {
	case most <= 0:
		return 0
	case as == duration && most >= us:
		return v % (most/us + 1) * us
	}
	return v % (most + 1)
}

// unit maps x to [0, 1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

func nameHash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// mix is the finalizer of SplitMix64 over four words.
func mix(a, b, c, d uint64) uint64 {
	return splitmix(splitmix(splitmix(splitmix(a)^b)^c) ^ d)
}

func splitmix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
