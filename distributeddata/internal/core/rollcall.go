package core

import (
	"errors"
	"slices"
)

// ErrMinMembers is the error of an operation above Local at a replica without MinMembers.
var ErrMinMembers = errors.New("MinMembers is not set: no level above Local can be reached; set it to the size of a cluster of fixed size, " +
	"to two thirds of the most members that may run at once if the cluster is to grow and shrink, or to 1 for a single process")

// Rollcall says who is counted in quorums, for people.
type Rollcall struct {
	version  int
	Counted  int       // quorums are counted in so many
	Own      string    // the name of this member
	Members  []Counted // those that are remembered, but for those that are gone
	Usurped  bool      // a later process runs under this member's name
	Leaving  bool      // others have begun to forget this member
	Entering bool      // this member waits for a majority to record it
	Epoch    uint64    // of the record that says all this; 0 without a record
	Trouble  string    // what is wrong with the record; empty if nothing is known to be
}

// Counted is one of the members that are remembered.
type Counted struct {
	Name    string
	Address string // where it was seen last; empty if that is not known
	In      bool   // it is counted; else it has never been ready
	Seen    bool   // it is in view
}

// Rollcall returns who is counted. It is the same as long as nothing has changed.
func (c *Core) Rollcall() *Rollcall {
	own := c.own()
	next := Rollcall{
		version: c.roll.version, Counted: c.size(), Own: c.cfg.Member, Leaving: own.rank == going, Usurped: c.roll.usurper != 0,
		Entering: c.roll.entering, Epoch: c.roll.epoch, Trouble: c.roll.roster.trouble,
	}
	if old := c.roll.told; old != nil && old.version == next.version && old.Usurped == next.Usurped && old.Entering == next.Entering &&
		old.Epoch == next.Epoch && old.Trouble == next.Trouble {
		return old
	}
	for _, r := range c.roll.all {
		if r.rank != gone {
			next.Members = append(next.Members, Counted{r.name, c.roll.places[r.name], r.rank != joining, r.name == own.name || c.inView(r)})
		}
	}
	c.roll.told = new(next) // not &next, which would be made on the heap at each call
	return c.roll.told
}

// inView reports whether a member, or one at its address, is in view.
func (c *Core) inView(r remembered) bool {
	at := c.roll.places[r.name]
	return slices.ContainsFunc(c.peers, func(p *peer) bool { return p.replica == r.inc.replica || at != "" && p.Address == at })
}

// Missing returns the members that are counted and not in view, with the addresses at which they were seen last.
func (r *Rollcall) Missing() (names []string) {
	for _, m := range r.Members {
		if m.In && !m.Seen {
			names = append(names, r.Label(m.Name))
		}
	}
	return names
}

// Label returns a name with the address beside it, if that is another.
func (r *Rollcall) Label(name string) string {
	for _, m := range r.Members {
		if m.Name == name && m.Address != "" && m.Address != name {
			return name + " (" + m.Address + ")"
		}
	}
	return name
}

// EncodeMembers returns what is remembered of the members, to be stored beside the rows; Remember reads it.
func (c *Core) EncodeMembers() []byte { return c.roll.encode() }

// Remember takes what was stored: a replica that begins with it is a restart of its member, not a newcomer [M2].
func (c *Core) Remember(stored []byte) error {
	m, err := decodeMemory(stored)
	if err == nil {
		c.recall(c.roll.merge(m))
	}
	return err
}
