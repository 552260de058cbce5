package core

import "time"

// pacing limits the unrequested messages to a member. It outlives the replica that runs there. If
// two replicas both take themselves for the member, each message of one makes the other a stranger,
// and strangers must not be answered without a pause [R45].
type pacing struct {
	remindAt time.Time // when to send that it lacks something
	told     uint64    // digest of this replica's memory that it was last told
	toldAt   time.Time // when it was told
	pullAt   time.Time // no further request for its memory before this time
	pulls    int       // requests for its memory that it has not answered
	turnAway time.Time // when to send the memory to a former replica
	greetAt  time.Time // when to greet a new replica with a heartbeat and questions
	greeted  int       // number of replicas greeted since then
	echoAt   time.Time // when to answer a memory without news with a heartbeat
	echoed   uint64    // the digest of the last such heartbeat
}

// maxGreeted is the number of new replicas of a member that are greeted within a heartbeat
// interval: one that starts, and one that restarts at once.
const maxGreeted = 2

// greets reports whether a new replica of the member must be sent this one's vector at once.
func (p *pacing) greets(now time.Time, pause time.Duration) bool {
	if !now.Before(p.greetAt) {
		p.greeted, p.greetAt = 0, now.Add(pause)
	}
	p.greeted = min(p.greeted+1, maxGreeted+1)
	return p.greeted <= maxGreeted
}

// turnsAway reports whether a former replica of the member must be notified that it is one.
func (p *pacing) turnsAway(now time.Time, pause time.Duration) bool {
	if now.Before(p.turnAway) {
		return false
	}
	p.turnAway = now.Add(pause)
	return true
}

// echoes reports whether the member must be notified that this replica has the same memory: once
// for each memory, and again after a while, since messages get lost.
func (p *pacing) echoes(now time.Time, pause time.Duration, memory uint64) bool {
	if p.echoed == memory && now.Before(p.echoAt) {
		return false
	}
	p.echoed, p.echoAt = memory, now.Add(pause)
	return true
}
