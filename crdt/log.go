package crdt

import "github.com/concord-go/concord/internal/causal"

// Log keeps the last deltas of a value used alone, so that a replica which says what it has seen (see
// [Seen]) can be sent what it lacks, removals included, instead of the whole state.
//
//	missing, ok := log.Since(v, theirs)
//	if !ok {
//		// the log does not reach back far enough: send v, to be merged
//	}
//
// A value alone could not answer that: it keeps nothing of what was removed, so it can tell which atoms
// the other lacks, but not which of the other's it has to take away.
//
// Add each delta of the value, made or applied, in that order. What came by a merge is not in the log,
// and Since says so. The zero value keeps every delta: see [Log.Cut]. A log belongs to one goroutine.
//
// It costs each delta. Cutting it costs a peer that is further behind a state instead of deltas, and
// never correctness.
type Log[T Value[T]] struct {
	deltas []Delta
	floor  causal.Vector // what is seen and not in deltas is covered by it
	top    causal.Vector // what floor and deltas cover together
}

// Add takes in the next delta.
func (l *Log[T]) Add(d Delta) {
	e := &d.event
	if d.Empty() || l.top.Covers(e.Dot) {
		return
	}
	if !e.Deps.Leq(l.top) { // something came by a merge
		l.floor = l.floor.Join(e.Deps)
	}
	l.deltas = append(l.deltas, d)
	l.top = l.top.Join(e.Deps).With(e.Dot)
}

// Len returns the number of deltas kept.
func (l *Log[T]) Len() int { return len(l.deltas) }

// Cut forgets the oldest deltas but for the last keep.
func (l *Log[T]) Cut(keep int) {
	n := max(len(l.deltas)-max(keep, 0), 0)
	for _, d := range l.deltas[:n] {
		l.floor = l.floor.With(d.event.Dot)
	}
	l.deltas = append([]Delta(nil), l.deltas[n:]...)
}

// Since returns what a replica that has seen have lacks of v, the value that the log is of: deltas for
// [Apply] in this order, none of which it has seen. It returns false if the log does not have them all;
// then merge states.
func (l *Log[T]) Since(v T, have VersionVector) (missing []Delta, ok bool) {
	need := l.floor
	if seen := Seen(v).v; !seen.Leq(l.top) {
		need = need.Join(seen)
	}
	if !need.Leq(have.v) {
		return nil, false
	}
	for _, d := range l.deltas {
		if !have.v.Covers(d.event.Dot) {
			missing = append(missing, d)
		}
	}
	return missing, true
}
