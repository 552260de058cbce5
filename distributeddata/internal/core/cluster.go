package core

import "github.com/concord-go/concord/distributeddata/internal/waiting"

// cluster decides which members count in quorums [M1 to M9], from what they say and from the record
// in a store, and whether this replica may count. It knows no key and changes no event: what a
// member says that it covers is noted at the peer, and the calls that may wait for it look again.
type cluster struct {
	herald
	peers   peers
	formers *formers
	waits   *waiting.Calls[Level, task]
}

func (c *Core) cluster() cluster {
	return cluster{c.herald(), c.peers, &c.formers, &c.waits}
}

// calls carries out the calls that wait for other members: it asks for what they wait for, answers
// such questions, and ends the calls. Their tasks may change who counts, so it is a cluster too.
type calls struct {
	cluster
	*probes
	in *intake
}

func (c *Core) calls() calls { return calls{c.cluster(), &c.probes, &c.in} }
