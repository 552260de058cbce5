package core

// A replica starts empty and not ready: it merges, serves and takes local updates, but its word does
// not count in quorums until it has been refilled [R17]. It is ready when answers to requests made
// after its start have come
//
//   - from so many ready members that they meet every write quorum, N-W+1 of N with W a majority, or
//   - from all other members of the view, ready or not: whatever anybody alive holds is then here.
//     So a cluster that starts cold becomes ready.
//
// In both cases the view must have MinMembers: a node alone in its view is its own majority.
func (c *Core) becomeReady() {
	n := len(c.peers) + 1
	if c.ready || n < c.cfg.MinMembers {
		return
	}
	answered, all := 0, true
	for _, p := range c.peers {
		if p.answered {
			answered++
		}
		all = all && p.refilled
	}
	if answered < n-(n/2+1)+1 && !all {
		return
	}
	c.ready, c.stirred = true, true
	for _, p := range c.peers {
		c.sendBeat(p)
	}
}

// refill asks one member after the other, while not ready, each at most once in a heartbeat interval.
func (c *Core) refill() {
	if c.ready || c.incoming != nil {
		return
	}
	for _, p := range c.peers {
		if p.replica != 0 && !p.answered && !c.now.Before(p.askAgain) && (p.ready || !p.refilled) {
			p.askAgain = c.now.Add(c.cfg.BeatInterval)
			c.request(p)
			return
		}
	}
}

// Silent returns the members whose answers this replica waits for to become ready; none once it is.
func (c *Core) Silent() (members []string) {
	if c.ready {
		return nil
	}
	for _, p := range c.peers {
		if !p.answered {
			members = append(members, p.ID)
		}
	}
	return members
}
