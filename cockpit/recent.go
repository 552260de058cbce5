package cockpit

import (
	"slices"
	"time"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
)

// Bounds of the list of changed entries.
const (
	maxChanges = 24   // shown
	maxNoticed = 2048 // compared per snapshot and replicator
)

// recent lists the entries that changed most recently, newest first. It compares snapshots, so its
// cost is proportional to the number of changes.
type recent struct {
	before map[string]distributeddata.Snapshot
	of     map[string]*distributeddata.Replicator
	last   []api.Change
}

// note compares each replicator with its previous snapshot.
func (r *recent) note(s Sources, hide hidden, now time.Time) {
	before := r.before
	r.before = map[string]distributeddata.Snapshot{}
	for name, dd := range s.Replicators {
		snapshot := dd.Snapshot()
		r.before[name] = snapshot
		if was, ok := before[name]; ok && r.of[name] == dd {
			r.compare(name, was, snapshot, hide, now)
		}
	}
	r.of = s.Replicators
}

func (r *recent) compare(name string, was, now distributeddata.Snapshot, hide hidden,
	at time.Time) {
	var fresh []api.Change
	n := 0
	for key := range now.Changed(was) {
		if n++; n > maxNoticed || len(fresh) == maxChanges {
			break
		}
		if !hide.has(key) {
			fresh = append(fresh, api.Change{Replicator: name, Key: view.Cut(key, maxName), At: at})
		}
	}
	for _, old := range r.last {
		again := slices.ContainsFunc(fresh, func(c api.Change) bool {
			return c.Replicator == old.Replicator && c.Key == old.Key
		})
		if !again && len(fresh) < maxChanges {
			fresh = append(fresh, old)
		}
	}
	r.last = fresh
}

// forget drops the snapshots.
func (r *recent) forget() { r.before, r.of = nil, nil }

// list returns the changes. The slice is never written again.
func (r *recent) list() []api.Change {
	if r.last == nil {
		return []api.Change{}
	}
	return r.last
}

// at returns when the last change of an entry was noticed, or nil.
func (r *recent) at(replicator, key string) *time.Time {
	for _, c := range r.last {
		if c.Replicator == replicator && c.Key == key {
			return new(c.At)
		}
	}
	return nil
}
