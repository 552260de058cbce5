package distributeddata

import (
	"slices"
	"sync"
	"time"
)

// uses collects the entries that were read and whose stamps are due for renewal. It is kept across
// lives.
type uses struct {
	mu   sync.Mutex
	keys map[string]struct{}
	told bool // the actor knows that there are keys
}

// gatherUses is how long uses are collected before they are sent to the other members.
const gatherUses = 100 * time.Millisecond

// add records the use of an entry. It reports whether the actor must be notified.
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

// take removes and returns up to most keys, sorted, and reports whether more remain.
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

// used records that an entry has been read, if its stamp is due for renewal: see
// lifetimes.renewAt. It does not block.
func (r *Replicator) used(key string, renewAt int64) {
	if renewAt == 0 {
		return
	}
	l := r.present.Load()
	if l != nil && l.state.Load() == running && l.ttls.now() >= renewAt && r.uses.add(key) {
		r.tell(&usesNoted{})
	}
}

// now returns the time by the clock of the present incarnation.
func (r *Replicator) now() time.Time {
	if p := r.state(); p != nil && p.ttls != nil {
		return p.ttls.clock.Now()
	}
	return time.Now()
}

// usesNoted notifies the actor that uses have been recorded.
type usesNoted struct{}

func (*usesNoted) run(a *replica, _ func(any)) { a.expirer.gather() }

func (*usesNoted) refuse(error, *Replicator, func(any)) {}

func (*usesNoted) unanswered() {}
