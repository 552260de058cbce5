package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// former is a replica that ran for a member until recently: a member that still takes it for the
// present one may receive a late message of it [R15].
type former struct {
	replica causal.Replica
	since   time.Time // zero: an earlier incarnation of this process knew it
}

// maxFormers bounds the number of known former replicas. formerBeats is for how many heartbeat
// intervals one is known.
const maxFormers, formerBeats = 64, 120

// arrivals tells of which replicas no event has arrived for formerBeats: a replica may run although
// this one has never seen it, while another member passes its events on [R15].
type arrivals struct {
	before, lately causal.Vector // what had been seen formerBeats before at, or earlier; and at at
	at             time.Time
}

// turn records what has been seen by now, once in formerBeats.
func (a *arrivals) turn(now time.Time, wait time.Duration, seen causal.Vector) {
	switch {
	case a.at.IsZero():
		a.lately, a.at = seen, now
	case !now.Before(a.at.Add(wait)):
		a.before, a.lately, a.at = a.lately, seen, now
	}
}

// formers are the replicas that ran for members until recently, and what has arrived of others.
type formers struct {
	list     []former
	arrivals arrivals
}

// replaced records that a replica no longer runs for its member, or is out of view.
func (f *formers) replaced(r causal.Replica, now time.Time) {
	if r == 0 {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(f.list), func(f former) bool { return f.replica == r })
	f.list = append(kept[max(0, len(kept)+1-maxFormers):], former{r, now})
}

// next returns the former replicas of the next incarnation of this process: those of this
// incarnation, and its peers, which the next one does not see yet. Their times begin anew, since
// the clock may have been set.
func (f *formers) next(ps peers) formers {
	for _, p := range ps {
		f.replaced(p.replica, time.Time{})
	}
	all := slices.Clone(f.list)
	for i := range all {
		all[i].since = time.Time{}
	}
	return formers{list: all}
}

// pass drops the former replicas that have not run for long enough, and records what has arrived.
func (f *formers) pass(now time.Time, wait time.Duration, seen causal.Vector) {
	for i := range f.list {
		if f.list[i].since.IsZero() {
			f.list[i].since = now
		}
	}
	f.arrivals.turn(now, wait, seen)
	late := func(f former) bool { return !now.Before(f.since.Add(wait)) }
	if slices.ContainsFunc(f.list, late) {
		f.list = slices.DeleteFunc(slices.Clone(f.list), late)
	}
}

// quiet reports whether a replica has not run lately, and none of its events beyond n has arrived.
func (f *formers) quiet(r causal.Replica, n uint64) bool {
	return f.arrivals.before.Get(r) == n && !f.has(r)
}

// has reports whether a replica ran for a member until recently.
func (f *formers) has(r causal.Replica) bool {
	return slices.ContainsFunc(f.list, func(f former) bool { return f.replica == r })
}
