package core

import (
	"errors"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
)

// ErrMinMembers is returned for operations above Local at a replica without MinMembers.
var ErrMinMembers = errors.New(
	"MinMembers is not set: no level above Local can be reached; set it, or that of node.RunConfig, " +
		"to two thirds of the most members that may run at once, rounded up, or to 1 for a single process")

// QuorumStatus lists the members that quorums are counted over, for people to read.
type QuorumStatus struct {
	version       int
	Counted       int       // the number of members that quorums are counted over
	Own           string    // the name of this member
	Members       []Counted // the remembered members, except those that are gone
	DuplicateName bool      // a later process runs under this member's name
	Leaving       bool      // other members have begun to forget this member
	Entering      bool      // this member waits for a majority to record it
	Epoch         uint64    // of the membership record; 0 without a record
	Trouble       string    // what is wrong with the record; empty if no problem is known
}

// Counted is one of the remembered members.
type Counted struct {
	Name    string
	Address string // where it was last seen; empty if unknown
	In      bool   // it is counted; otherwise it has never been ready
	Seen    bool   // it is in view
}

// QuorumStatus returns the counted members. It returns the same pointer as long as nothing has
// changed.
func (c *Core) QuorumStatus() *QuorumStatus {
	own := c.members.Own()
	next := QuorumStatus{
		version: c.members.version, Counted: c.members.Size(), Own: c.cfg.Member,
		Leaving:       own.Rank == quorum.Going,
		DuplicateName: c.members.duplicate != 0,
		Entering:      c.members.entering, Epoch: c.members.Epoch,
		Trouble: c.members.roster.trouble,
	}
	if old := c.members.told; old != nil && old.version == next.version &&
		old.DuplicateName == next.DuplicateName && old.Entering == next.Entering &&
		old.Epoch == next.Epoch && old.Trouble == next.Trouble {
		return old
	}
	for _, r := range c.members.Members() {
		if r.Rank != quorum.Gone {
			next.Members = append(next.Members, Counted{r.Name, c.members.places[r.Name],
				r.Rank != quorum.Joining,
				r.Name == own.Name || c.peers.see(r.Inc.Replica, c.members.places[r.Name])})
		}
	}
	c.members.told = new(next) // not &next, which would be allocated on the heap at each call
	return c.members.told
}

// Missing returns the members that are counted and not in view, with the addresses at which they
// were last seen.
func (r *QuorumStatus) Missing() (names []string) {
	for _, m := range r.Members {
		if m.In && !m.Seen {
			names = append(names, r.Label(m.Name))
		}
	}
	return names
}

// Label returns a name followed by the member's address, if that differs.
func (r *QuorumStatus) Label(name string) string {
	for _, m := range r.Members {
		if m.Name == name && m.Address != "" && m.Address != name {
			return name + " (" + m.Address + ")"
		}
	}
	return name
}
