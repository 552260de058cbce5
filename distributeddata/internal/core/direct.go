package core

import (
	"errors"
	"time"

	"github.com/concord-go/concord/internal/causal"
)

// ErrStep rejects an update that must be made by a step: the core has a disk, or must commit the
// open events first. Nothing was done.
var ErrStep = errors.New("core: the update must be a step")

// Opened is an entry after an update by Direct.
type Opened struct {
	Before causal.Store  // before the open events
	After  Held          // after the update
	Seen   causal.Vector // what this replica will have seen after it
	// Changed says that the update has changed something.
	Changed bool
}

// Direct makes an update part of the open events, between two steps: it has no effects,
// and nothing that Step, Keys or Seen return shows it before an End or another event commits it
// [R12]. The caller must call it as it calls Step: never at the same time. The result is about key.
//
// The update takes an event number of its own, so that its caller can be answered and others can
// read it at once: the value covers exactly the events up to that number. After an error, or if
// modify does not return, nothing has changed. Everything that may fail comes before the first
// change. An update that has been answered is never given up: see endAgain.
func (c *Core) Direct(now time.Time, key string, modify func(*Txn) error) (o Opened, err error) {
	if c.disk.phase != NoDisk || c.sealed || c.open.hidden || c.Full() {
		return o, ErrStep
	}
	t := &c.open.direct
	c.beginTxn(t, now)
	defer func() { *t = Txn{} }()
	if err = t.run(modify); err != nil {
		return o, err
	}
	for _, w := range t.work {
		// What the open event replaces of its own is no change to others.
		o.Changed = o.Changed || w.cleared || !w.change.Empty() || !w.next.Same(w.was)
		if w.key == key {
			o.Before, o.After = w.before, Held{Store: w.next, bytes: w.bytes}
		}
	}
	if !o.Changed {
		return o, nil
	}
	o.Seen = t.After(true)
	c.reach("before merge")
	c.merge(t)
	c.open.taken, c.open.using, c.open.promised = c.open.taken+1, false, true
	return o, nil
}

// Full reports whether so much waits for a push that it must be made before more updates.
func (c *Core) Full() bool {
	return c.outbox.Gathered() > maxUnpushed || c.open.events() >= maxOpen
}
