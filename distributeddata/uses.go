package distributeddata

import (
	"slices"
	"sync"
	"time"
)

// uses are the entries that have been read since the actor has looked, with stamps that were too old. They outlive lives.
type uses struct {
	mu   sync.Mutex
	keys map[string]struct{}
	told bool // the actor has been told that there are some
}

// gatherUses is how long uses come together before others are told of them.
const gatherUses = 100 * time.Millisecond

// add notes the use of an entry, and reports whether the actor is to be told.
func (u *uses) add(key string) (tell bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.keys == nil {
		u.keys = map[string]struct{}{}
	}
	u.keys[key] = struct{}{}
	tell, u.told = !u.told, true
	return tell
}

// take removes up to most of the entries, in order, and reports whether there are more.
func (u *uses) take(most int) (keys []string, more bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key := range u.keys {
		if len(keys) == most {
			break
		}
		keys = append(keys, key)
		delete(u.keys, key)
	}
	slices.Sort(keys)
	u.told = len(u.keys) > 0
	return keys, u.told
}

// used notes that an entry has been read, if that is due to be told: see lifetimes.renewAt. It never waits.
func (r *Replicator) used(key string, renewAt int64) {
	if renewAt == 0 {
		return
	}
	l := r.present.Load()
	if l != nil && l.state.Load() == running && l.ttls.now() >= renewAt && r.uses.add(key) {
		r.tell(&usesNoted{})
	}
}

// now is the time of the clock of the present life.
func (r *Replicator) now() time.Time {
	if p := r.state(); p != nil && p.ttls != nil {
		return p.ttls.clock.Now()
	}
	return time.Now()
}

// usesNoted tells the actor that there are uses.
type usesNoted struct{}

func (*usesNoted) run(a *replica, _ func(any)) { a.expirer.gather() }

func (*usesNoted) refuse(error, *Replicator, func(any)) {}

func (*usesNoted) unanswered() {}
