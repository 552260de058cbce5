package core

// Again returns the replica with which the next incarnation of the same process continues [R40]. It
// holds the state of c, including the event that was still open, but has a new id: the events of
// the ended incarnation are those of a departed origin, and are served from the log like any
// others. It knows no peer, and is not ready until it has been refilled. c must not be used
// afterwards.
func (c *Core) Again(cfg Config) *Core {
	c.endAgain() // c may have panicked
	return c.successor(cfg)
}

// successor returns a new replica with the state of c, in which no event is open.
func (c *Core) successor(cfg Config) *Core {
	n := New(cfg)
	n.history.Continue(&c.history)
	n.bases.Set, n.stats = c.bases.Next(), c.stats
	n.members.Memory, n.members.places = c.members.Memory, c.members.places
	n.formers = c.formers.next(c.peers)
	if n.disk.phase != NoDisk {
		n.disk.take(&c.disk, c.members.inc)
	}
	return n
}

// inherit joins the state of an earlier incarnation that ended too late for Again. The events of
// that incarnation are not this replica's own. Its disk is taken over, unless the rows have been
// loaded here.
func (c *Core) inherit(old *Core) {
	if c.disk.phase == DiskLoading {
		c.disk.take(&old.disk, old.members.inc)
		c.cluster().remember(old.members.Memory)
	}
	old.end()
	c.note(c.history.Inherit(&old.history), c.Seen(), &c.bases)
}

// Uncopied returns the number of events of this replica, and of the earlier incarnations of its
// process, that no other replica is known to have. They are lost if the process ends now.
func (c *Core) Uncopied() uint64 { return c.history.Uncopied() }

// UncopiedKeys returns keys that these events changed, in order, at most limit of them.
func (c *Core) UncopiedKeys(limit int) []string { return c.history.UncopiedKeys(limit) }
