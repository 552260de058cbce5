package crdt

import "github.com/concord-go/concord/internal/causal"

// maxTrail is the number of steps up to which looking at each path is quicker than comparing states.
const maxTrail = 8

// trail notes where a writer changes a value, so that the delta of a small change need not be found by
// comparing the states before and after it.
//
// A nil trail notes nothing.
//
// Invariant: while on, the state at differs from the one the trail began with at no other paths than
// paths. A change that no step tells of breaks the line of states: then the trail ends nowhere, and
// the states are compared.
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

// step notes that the state from became to by a change at path.
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

// change returns what the event of d did to turn base into next.
func (t *trail) change(base, next causal.Store, d causal.Dot) (causal.Change, error) {
	if t.on && next.Same(t.at) {
		return causal.BetweenAt(base, next, d, t.paths)
	}
	return causal.Between(base, next, d)
}
