package guard

import "github.com/asynkron/protoactor-go/actor"

// maxWatches bounds the watches that one stream of a member holds on this member, and those of all
// strangers together.
const maxWatches = 10_000

// watch records that an actor of the peer watches one of this member.
type watch struct{ address, watcher, target string }

func watchOf(watcher *actor.PID, target string) watch {
	return watch{watcher.GetAddress(), watcher.GetId(), target}
}

// watches holds watches. The zero value is empty.
type watches struct {
	all  map[watch]struct{}
	skip int // watches to reject before looking for stopped actors again
}

// add records a watch. It returns false if there are too many. incarnations reports whether an
// actor of this member is alive: watches of stopped actors are dropped.
func (ws *watches) add(watcher *actor.PID, target string, lives func(id string) bool) bool {
	w := watchOf(watcher, target)
	if _, ok := ws.all[w]; ok {
		return true
	}
	if len(ws.all) >= maxWatches && !ws.clean(lives) {
		return false
	}
	if ws.all == nil {
		ws.all = map[watch]struct{}{}
	}
	ws.all[w] = struct{}{}
	return true
}

// clean drops the watches of stopped actors, and reports whether there is room. After a search in
// vain, as many watches are rejected without a search as were examined.
func (ws *watches) clean(lives func(id string) bool) bool {
	if ws.skip > 0 {
		ws.skip--
		return false
	}
	for w := range ws.all {
		if !lives(w.target) {
			delete(ws.all, w)
		}
	}
	if len(ws.all) >= maxWatches {
		ws.skip = maxWatches
		return false
	}
	return true
}

func (ws *watches) remove(watcher *actor.PID, target string) {
	delete(ws.all, watchOf(watcher, target))
}

// lives reports whether an actor of this member is alive, or true if that is not known.
func (p *Process) lives(id string) bool {
	m := p.member.Load()
	if m == nil {
		return true
	}
	return m.lives(id)
}
