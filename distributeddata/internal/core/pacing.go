package core

import "time"

// pacing says when a member may be sent again what nobody asked for. It outlives the replica that runs
// there: of two that both take themselves for the member, each message of one makes the other a stranger,
// and answers to strangers must not go on without time passing [R58].
type pacing struct {
	remindAt time.Time // that it lacks something
	tellAt   time.Time // a memory
	turnAway time.Time // the memory, as the answer to a former replica
	greetAt  time.Time // a heartbeat and questions, as a replica that is new
	greeted  int       // replicas since then
	echoAt   time.Time // a heartbeat, as the answer to a memory that brought nothing
	echoed   uint64    // the digest of the last such heartbeat
}

// maxGreeted is how many new replicas of a member are greeted within a heartbeat interval: one that starts, and one that
// starts anew at once.
const maxGreeted = 2

// greets reports whether a new replica of p is to be told at once what this one has seen.
func (c *Core) greets(p *peer) bool {
	if !c.now.Before(p.greetAt) {
		p.greeted, p.greetAt = 0, c.now.Add(c.cfg.BeatInterval)
	}
	p.greeted = min(p.greeted+1, maxGreeted+1)
	return p.greeted <= maxGreeted
}

// turnsAway reports whether a former replica of p is to be told that it is one.
func (c *Core) turnsAway(p *peer) bool {
	if c.now.Before(p.turnAway) {
		return false
	}
	p.turnAway = c.now.Add(c.cfg.BeatInterval)
	return true
}

// echoes reports whether p is to be told that this replica remembers the same: once for each memory, and
// again after a while, since messages get lost.
func (c *Core) echoes(p *peer) bool {
	if p.echoed == c.roll.digest && c.now.Before(p.echoAt) {
		return false
	}
	p.echoed, p.echoAt = c.roll.digest, c.now.Add(c.cfg.Grace)
	return true
}
