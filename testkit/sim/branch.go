package sim

import (
	"hash/maphash"
	"sync"
)

// mostAlternatives is how many values of one Number an exploration plays; of a wider range it plays
// the ends.
const mostAlternatives = 64

// deviation is a choice other than the harmless one, at a point of choice that is told apart by its
// place in the history.
type deviation struct{ point, value int32 }

// branch makes the choices of one explored history: the harmless ones but for some deviations. It
// notes how many alternatives each point has, so that others can branch off.
type branch struct {
	deviations []deviation // ascending by point
	next       int         // of these
	points     []uint8     // alternatives at each point so far
	visits     *visits
}

// choose returns one of n alternatives, 0 unless the history deviates here.
func (b *branch) choose(n int) (v int) {
	if b.next < len(b.deviations) && int(b.deviations[b.next].point) == len(b.points) {
		v = int(b.deviations[b.next].value)
		b.next++
	}
	b.points = append(b.points, uint8(n))
	return v
}

// pick returns a value from lo to hi, each of them an alternative if they are few.
func (b *branch) pick(lo, hi int64, as pickKind) int64 {
	switch {
	case hi <= lo:
		return lo
	case as == numeral && hi-lo < mostAlternatives:
		return lo + int64(b.choose(int(hi-lo)+1))
	case b.choose(2) == 1:
		return hi
	}
	return lo
}

// fate returns what becomes of a message. Whatever has a probability is an alternative, and nothing
// else is.
func (b *branch) fate(f Faults) fate {
	fates := []fate{plain}
	if f.Loss > 0 {
		fates = append(fates, fate{})
	}
	if f.Duplicate > 0 {
		twice := plain
		twice.copies = 2
		twice.extra[1] = f.Jitter
		fates = append(fates, twice)
	}
	if f.Jitter > 0 {
		slow := plain
		slow.extra[0] = f.Jitter
		fates = append(fates, slow)
	}
	if f.Late > 0 {
		late := plain
		late.extra[0] = f.Lateness
		fates = append(fates, late)
	}
	if len(fates) == 1 {
		return plain
	}
	return fates[b.choose(len(fates))]
}

// visits are the states that explored histories have been in.
type visits struct {
	sync.Mutex
	seed  maphash.Seed
	first map[uint64]int // deviations with which a state was reached first, by its hash
}

func newVisits() *visits { return &visits{seed: maphash.MakeSeed(), first: map[uint64]int{}} }

// visited reports whether a history with fewer deviations, or another one with as many, has been in
// a state; otherwise it notes that this one has.
func (b *branch) visited(state func() any) bool {
	if b.next < len(b.deviations) {
		return false // on the way to where this history parts from the one it came from
	}
	key := maphash.Comparable(b.visits.seed, state())
	b.visits.Lock()
	defer b.visits.Unlock()
	if before, ok := b.visits.first[key]; ok && before <= len(b.deviations) {
		return true
	}
	b.visits.first[key] = len(b.deviations)
	return false
}
