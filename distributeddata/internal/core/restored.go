package core

import (
	"errors"

	"github.com/concord-go/concord/distributeddata/internal/waiting"
)

// ErrRestored ends the calls of a replica that found that it had been restored from a snapshot of
// its machine. What an update among them did is kept, unless other members decide otherwise [R26].
var ErrRestored = errors.New("core: this replica was restored from a snapshot, and goes on as a new one")

// beginAnew goes on as a new replica, with the state of this one, as the next incarnation of the
// process would: another member has more own events of it than it knows, or other ones, so its
// machine was restored from a snapshot [R3, R4]. What it did is now what an origin that has
// departed did. It counts when it has been refilled. If members hold different events under one
// number, fingerprints find that, and one side mends itself.
func (c *Core) beginAnew() {
	c.end()
	n := c.successor(c.cfg)
	n.now, n.begun, n.touched = c.now, c.begun, c.touched
	n.ids, n.members.roster.calls = c.ids, c.members.roster.calls
	n.members.withdrawn, n.members.sealed = c.members.withdrawn, c.members.sealed
	n.disk.kept, n.disk.again = false, c.disk.again // a batch in flight stays there
	for _, e := range c.effects {
		if _, ok := e.(Send); !ok { // messages would be signed by the new id
			n.emit(e)
		}
	}
	n.emit(Restored{Was: c.Replica(), Is: n.Replica(), Alone: c.Uncopied()})
	for _, id := range waitingCalls(&c.waits, &c.disk) {
		n.emit(Done{ID: id, Err: ErrRestored})
	}
	others := make([]Member, len(c.peers))
	for i, p := range c.peers {
		others[i] = p.Member
	}
	n.view(others)
	*c = *n
}

// waitingCalls returns the ids of all calls under way.
func waitingCalls(w *waiting.Calls[Level, task], d *disk) (ids []uint64) {
	ids = w.IDs()
	for _, e := range d.barrier.Outputs() {
		if d, ok := e.(Done); ok {
			ids = append(ids, d.ID)
		}
	}
	return ids
}
