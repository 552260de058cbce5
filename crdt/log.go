package crdt

import "github.com/concord-go/concord/internal/causal"

// Log keeps recent deltas of a value used alone. A replica that reports what it has seen (see
// [Seen]) can then be sent the deltas it lacks, removals included, instead of the whole state.
//
//	missing, ok := log.Since(v, theirs)
//	if !ok {
//		// the log does not reach back far enough: send v, to be merged
//	}
//
// A value alone cannot provide this. It keeps no record of removed elements, so it can find the
// atoms that the other replica lacks, but not those that the other replica must remove.
//
// Add each delta of the value, made or applied, in that order. Changes that arrived by a merge are
// not in the log, and Since then returns false. The zero value keeps every delta: see [Log.Cut]. A
// Log is not safe for concurrent use.
//
// A Log costs the size of its deltas. After a Cut, a peer that is further behind gets a whole state
// instead of deltas; the result is the same.
type Log[T Value[T]] struct {
	deltas []Delta
	floor  causal.Vector // covers everything seen that is not in deltas
	top    causal.Vector // everything that floor and deltas cover together
}

// Add appends the next delta to the log.
func (l *Log[T]) Add(d Delta) {
	e := &d.event
	if d.Empty() || l.top.Covers(e.Dot) {
		return
	}
	if !e.Deps.Leq(l.top) { // some changes arrived by a merge
		l.floor = l.floor.Join(e.Deps)
	}
	l.deltas = append(l.deltas, d)
	l.top = l.top.Join(e.Deps).With(e.Dot)
}

// Len returns the number of deltas kept.
func (l *Log[T]) Len() int { return len(l.deltas) }

// Cut drops all but the last keep deltas.
func (l *Log[T]) Cut(keep int) {
	n := max(len(l.deltas)-max(keep, 0), 0)
	for _, d := range l.deltas[:n] {
		l.floor = l.floor.With(d.event.Dot)
	}
	l.deltas = append([]Delta(nil), l.deltas[n:]...)
}

// Since returns the deltas that a replica that has seen have lacks of v, in the order for [Apply].
// v is the value that the log belongs to. Since returns false if the log lacks some of them; merge
// states in that case.
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
