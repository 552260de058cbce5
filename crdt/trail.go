package crdt

import "github.com/concord-go/concord/internal/causal"

// maxTrail is the number of steps up to which comparing single paths is faster than comparing
// states.
const maxTrail = 8

// trail records where a writer changes a value, so that the delta of a small change can be computed
// without comparing whole states.
//
// A nil trail records nothing.
//
// Invariant: while on is set, the state at differs from the initial state only at paths. A change
// made without a call of step breaks the chain of states; change then compares whole states.
type trail struct {
	at    causal.Store
	paths []string
	on    bool
	first [1]string // room for the usual single path
}

func (t *trail) begin(s causal.Store) {
	t.at, t.on = s, true
	t.paths = t.first[:0]
}

// step records a change at path that turned state from into state to.
func (t *trail) step(from, to causal.Store, path []byte) {
	if t == nil || !t.on {
		return
	}
	if !from.Same(t.at) || len(t.paths) == maxTrail {
		t.on = false
		return
	}
	t.at, t.paths = to, append(t.paths, string(path))
}

// change returns the change that event d made from base to next.
func (t *trail) change(base, next causal.Store, d causal.Dot) (causal.Change, error) {
	if t.on && next.Same(t.at) {
		return causal.BetweenAt(base, next, d, t.paths)
	}
	return causal.Between(base, next, d)
}
