package history

import (
	"maps"
	"slices"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/homes"
)

// past is what the earlier incarnations of this process did [R40].
type past struct {
	events causal.Vector // by their replica ids
	copied causal.Vector // those that another replica is known to have
}

// after returns the past as of the end of the incarnation of o.
func (p past) after(o *History) past {
	return past{
		events: p.events.Join(o.past.events).Set(o.me, o.Own()),
		copied: p.copied.Join(o.past.copied).Set(o.me, o.safe()),
	}
}

// Continue makes h, which has seen nothing, the next incarnation of the process of o: it has the
// state of o, under its own id. o must not be used afterwards.
func (h *History) Continue(o *History) {
	h.keys, h.seen, h.sum, h.log, h.marks = o.keys, o.seen, o.sum, o.log, o.marks
	h.clock, h.hashes.heard = o.clock, o.hashes.heard
	h.lasts = o.lasts
	h.past = h.past.after(o)
}

// Inherit joins the state of an earlier incarnation of this process, in which no event is open.
func (h *History) Inherit(o *History) Change {
	h.past = h.past.after(o)
	h.clock = max(h.clock, o.clock)
	h.lasts = h.lasts || o.lasts
	return h.Join(o.State())
}

// Mine reports whether a replica is this one, or was an earlier incarnation of its process.
func (h *History) Mine(r causal.Replica) bool { return r == h.me || h.past.events.Get(r) > 0 }

// Copied records that another replica has the own events up to n.
func (h *History) Copied(n uint64) { h.copied = max(h.copied, n) }

// CopiedBefore records that another replica has seen v, of what the earlier incarnations did.
func (h *History) CopiedBefore(v causal.Vector) {
	if p := &h.past; !p.events.Leq(p.copied) {
		p.copied = p.copied.Join(v.Meet(p.events))
	}
}

// AllIn reports whether v covers all that this replica and the earlier incarnations of its process
// have done.
func (h *History) AllIn(v causal.Vector) bool {
	return h.Own() == v.Get(h.me) && h.past.events.Leq(v)
}

// Missing returns the number of events in ours that theirs does not cover.
func Missing(ours, theirs causal.Vector) uint64 {
	return ours.Events() - ours.Meet(theirs).Events()
}

// safe returns the number of own events, from the first on, that another replica is known to have
// or that need not outlive this one.
func (h *History) safe() uint64 {
	if h.kept <= h.copied {
		return h.Own()
	}
	return h.copied
}

// Uncopied returns the number of events of this replica, and of the earlier incarnations of its
// process, that no other replica is known to have. It is 0 if the loss of all these would cost
// nothing.
func (h *History) Uncopied() uint64 {
	return h.Own() - h.safe() + Missing(h.past.events, h.past.copied) + h.open.events()
}

// Rebuilt reports whether every key that has changed here, or has been received, is rebuilt: if all
// replicas were lost, nothing would be missed.
func (h *History) Rebuilt() bool {
	if h.lasts || h.Gathers() {
		return false
	}
	for key := range h.keys.All() {
		if lasting(key) {
			return false
		}
	}
	return true
}

// lasting reports whether a key is missed when it is lost.
func lasting(key string) bool { return !homes.Rebuilt(key) }

// UncopiedKeys returns keys that these events changed, without those that are rebuilt, in order, at
// most limit of them. Of events that are no longer in the log, as those of a member that has been
// alone for a heartbeat, it finds the keys by the atoms that they have left in the state. An event
// that only removed atoms leaves none.
func (h *History) UncopiedKeys(limit int) []string {
	keys := map[string]bool{}
	for _, w := range h.open.keys {
		keys[w.key] = true
	}
	cut := map[causal.Replica]uint64{}
	for d := range h.past.events.Set(h.me, h.Own()).All() {
		copied := h.past.copied.Get(d.Replica)
		if d.Replica == h.me {
			copied = h.safe()
		}
		if copied >= d.N {
			continue
		}
		events, complete := h.log.from(d.Replica, copied+1)
		if !complete {
			cut[d.Replica] = copied
			continue
		}
		for _, e := range events {
			for _, k := range e.Keys {
				keys[k.Key] = true
			}
		}
	}
	if len(cut) > 0 {
		h.keys.addedBeyond(cut, keys)
	}
	maps.DeleteFunc(keys, func(key string, _ bool) bool { return homes.Rebuilt(key) })
	out := slices.Sorted(maps.Keys(keys))
	return out[:min(limit, len(out))]
}

// addedBeyond adds to keys those with an atom that a later event of one of these replicas has
// added.
func (k Keys) addedBeyond(events map[causal.Replica]uint64, keys map[string]bool) {
	for key, held := range k.All() {
		for _, e := range held.Prefix("") {
			for at := range e.All() {
				if n, ok := events[at.Replica]; ok && at.N > n {
					keys[causal.Clone(key)] = true
				}
			}
		}
	}
}
