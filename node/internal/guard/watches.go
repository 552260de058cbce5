package guard

import "github.com/asynkron/protoactor-go/actor"

// maxWatches bounds the watches that one peer holds here.
const maxWatches = 10_000

// watch says that an actor of the peer watches one here.
type watch struct{ watcher, target string }

// watches are those of one stream. The zero value is empty.
type watches struct {
	all  map[watch]struct{}
	skip int // watches to refuse before actors that are gone are looked for again
}

// add notes a watch; false if there are too many. lives tells whether an actor here is alive: those
// that are gone are watched no more.
func (ws *watches) add(watcher *actor.PID, target string, lives func(id string) bool) bool {
	w := watch{watcher.GetId(), target}
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

// clean forgets watches of actors that are gone, and tells whether there is room. It costs the peer
// as many refused watches as it looks at in vain.
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
	delete(ws.all, watch{watcher.GetId(), target})
}

// lives tells whether an actor of this member is alive; true if that is not known.
func (p *Process) lives(id string) bool {
	m := p.member.Load()
	if m == nil {
		return true
	}
	return m.lives(id)
}
