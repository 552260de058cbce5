package sim

import (
	"hash/maphash"
	"sync"
)

// mostAlternatives is the maximum number of values of one Number that an exploration plays. Of a
// wider range it plays only the ends.
const mostAlternatives = 64

// deviation is a choice other than the harmless one, at a choice point identified by its position
// in the history.
type deviation struct{ point, value int32 }

// branch makes the choices of one explored history: the harmless ones except for some deviations.
// It records the number of alternatives at each point, so that other histories can branch off.
type branch struct {
	deviations []deviation // ascending by point
	next       int         // index of the next deviation
	points     []uint8     // alternatives at each point so far
	visits     *visits
}

// choose returns one of n alternatives: 0 unless the history deviates here.
func (b *branch) choose(n int) (v int) {
	if b.next < len(b.deviations) && int(b.deviations[b.next].point) == len(b.points) {
		v = int(b.deviations[b.next].value)
		b.next++
	}
	b.points = append(b.points, uint8(n))
	return v
}

// pick returns a value from lo to hi. If there are few values, each one is an alternative.
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

// fate returns the fate of a message. The alternatives are the faults with a probability above
// zero.
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

// visits is the set of states reached by explored histories.
type visits struct {
	sync.Mutex
	seed  maphash.Seed
	first map[uint64]int // the smallest number of deviations that reached each state, by its hash
}

func newVisits() *visits { return &visits{seed: maphash.MakeSeed(), first: map[uint64]int{}} }

// visited reports whether a history with fewer deviations, or another one with the same number, has
// reached the state. Otherwise it records that this one has.
func (b *branch) visited(state func() any) bool {
	if b.next < len(b.deviations) {
		return false // not yet at the point where this history branches off
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
