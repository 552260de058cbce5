package membership

import (
	"slices"
	"strings"
	"time"
)

// other is a running member of our cluster in conflict with us: it does not list us, or we do not
// list it. It has answered us, so both directions work.
type other struct {
	id, address string
	incarnation uint64
	hello       hello     // the last one
	since       time.Time // since when there is evidence
	heard       time.Time
	named       time.Time // when it was last sent the members that we list
	told        bool      // the split has been reported
	polled      bool      // all of our view have been asked whether they list us
	certain     bool      // one has dropped the other, and never lists it again
}

func (o *other) member() Member {
	return Member{ID: o.id, Address: o.address, Incarnation: o.incarnation, Stamp: o.hello.stamp}
}

func (o *other) rank() rank { return rank{o.hello.claim, o.hello.stamp, o.id} }

// conflicts holds the members in conflict with us, at most maxOthers.
type conflicts struct {
	settings
	by       map[string]*other // by id
	dropped  []string          // ids that were once listed, oldest first, at most maxDropped
	polledAt time.Time         // when all of our view were last asked whether they list us
	reported []Member
}

func newConflicts(s settings) conflicts { return conflicts{settings: s, by: map[string]*other{}} }

// expire removes evidence about silent members, and reports whether there was any.
func (x *conflicts) expire(now time.Time) (changed bool) {
	for id, o := range x.by {
		if now.Sub(o.heard) > x.silence() {
			delete(x.by, id)
			changed = true
		}
	}
	return changed
}

// drop records an id that was listed: Proto.Actor never lists it here again.
func (x *conflicts) drop(id string) {
	if slices.Contains(x.dropped, id) {
		return
	}
	x.dropped = append(x.dropped, id)
	if len(x.dropped) > x.maxDropped {
		x.dropped = slices.Delete(x.dropped, 0, 1)
	}
}

// contact returns the interval of hellos to a member in conflict.
func (x *conflicts) contact() time.Duration {
	return x.contactGap + time.Duration(len(x.by))*x.contactPer
}

// silence returns the time after which a member that was heard from counts as unreachable.
func (x *conflicts) silence() time.Duration { return 3*x.contact() + 3*time.Second }

// at returns the member last heard from at an address.
func (x *conflicts) at(address string) (at *other) {
	for _, o := range x.by {
		if o.address == address && (at == nil || o.heard.After(at.heard) ||
			o.heard.Equal(at.heard) && o.id < at.id) {
			at = o
		}
	}
	return at
}

// patienceFor returns how long evidence about o must last before a member steps down.
func (x *conflicts) patienceFor(o *other) time.Duration {
	if o.certain {
		return x.patience
	}
	return x.joinPatience
}

// ripe returns the members about which evidence has lasted long enough, by id.
func (x *conflicts) ripe(now time.Time) (out []*other) {
	for _, o := range x.by {
		if now.Sub(o.since) >= x.patienceFor(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *other) int { return strings.Compare(a.id, b.id) })
	return out
}
