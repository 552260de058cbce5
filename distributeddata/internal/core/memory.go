package core

import (
	"fmt"
	"maps"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// vouched records that p, which counts, covers v.
func (c cluster) vouched(p *peer, v causal.Vector) {
	p.vouches, p.sure = true, p.sure.Join(v)
	c.waits.Stir()
}

// answered records that p has answered a request for what this replica lacks.
func (c cluster) answered(p *peer, h head) {
	p.gave = true
	c.members.filled = c.members.filled || h.ready
	if h.members == c.members.Digest() {
		c.counted(p, said{h.members, h.head, h.ready, h.entering, h.kept})
	}
}

// counted records what p has said under the memory of this replica, which covers what p had seen.
func (c cluster) counted(p *peer, s said) {
	p.refilled, p.answered, p.entering, p.whole = true, s.ready && p.votes, s.entering,
		s.kept && p.counts()
	if s.ready {
		c.vouched(p, s.seen)
	}
}

// takeHeartbeats counts heartbeats as answers, from when this replica has its place until it is
// ready.
func (c cluster) takeHeartbeats() {
	if c.members.ready || !c.members.hasPlace() {
		return
	}
	for _, p := range c.peers {
		if s := p.said; s.covered(c.members.Digest(), c.Seen()) &&
			(!p.refilled || s.ready && !p.answered) {
			c.members.filled = c.members.filled || s.ready
			c.counted(p, s)
		}
	}
}

// recall makes m the memory of this replica. Everything said under another memory no longer counts,
// and the operations that wait for it ask again [M1].
func (c cluster) recall(m quorum.Memory) {
	if m.Digest() == c.members.Digest() {
		c.members.Chain = m.Chain
		return
	}
	if c.cfg.Recorded {
		c.members.placed(m, c.Replica(), c.now.Add(2*c.cfg.BeatInterval))
	}
	for _, r := range c.members.Beyond(m) {
		next := m.Of(r.Name)
		if next.Inc != r.Inc {
			c.formers.replaced(r.Inc.Replica, c.now)
		}
		if next.Rank == quorum.Absent {
			delete(c.members.places, r.Name)
		}
	}
	c.members.news, c.members.Memory, c.members.recalled = m.Beyond(c.members.Memory), m, c.now
	if c.members.showAt.IsZero() {
		c.members.showAt = c.now.Add(settlePause)
	}
	c.reconsider()
	for _, p := range c.peers {
		p.turned, p.askAgain = p.spoke && p.memory == m.Digest(), time.Time{}
	}
	for o := range c.waits.All() {
		o.Task = o.Task.anew()
	}
	for _, said := range []map[causal.Replica]bool{c.members.parted, c.members.leavers} {
		maps.DeleteFunc(said, func(r causal.Replica, _ bool) bool {
			return c.members.At(r).Rank == quorum.Absent && c.peers.at(r) == nil
		})
	}
	c.waits.Stir()
}

// reconsider determines the roles of this replica and the others in the current memory. Nothing
// said under another memory counts.
func (c cluster) reconsider() {
	c.members.version++
	own := c.members.Own()
	c.disk.knows(own.Inc, c.members.inc)
	if own.Inc == c.members.inc {
		c.members.duplicate = 0
	}
	c.members.resigned = own.Rank == quorum.Going && own.Inc == c.members.inc &&
		(c.members.ready || c.members.resigned || c.disk.keeps() && c.disk.cfg.Behind == 0)
	removed := c.members.ready && own.Inc == c.members.inc && own.Rank != quorum.In
	if removed { // what it has been given is old by the time it enters again
		c.members.filled = false
		if !c.members.leaving {
			c.emit(Forgotten{})
		}
	}
	if own.Rank != quorum.In || own.Inc != c.members.inc {
		c.members.ready = false
	}
	at := make(map[causal.Replica]quorum.Member, len(c.peers))
	for _, r := range c.members.Members() {
		at[r.Inc.Replica] = r
	}
	for _, p := range c.peers {
		p.silence()
		p.gave = p.gave && !removed
		c.members.identifyAs(p, at[p.replica])
	}
}

// change installs a memory that this replica has changed; the other members are told at once.
func (c cluster) change(m quorum.Memory) {
	c.members.changed = append(c.members.changed, m.Beyond(c.members.Memory)...)
	c.recall(m)
}

// under records the memory under which p speaks, and reports whether it is that of this replica
// [M1].
func (c cluster) under(p *peer, digest uint64) bool {
	same := digest == c.members.Digest()
	turned := same && (!p.spoke || p.memory != digest)
	if turned {
		p.turned = true
		c.waits.Stir()
	}
	p.spoke, p.memory, p.heardAt = true, digest, c.now
	switch {
	case !same:
		c.pull(p)
	case turned && p.told != digest && digest != 0 &&
		p.echoes(c.now, c.cfg.Grace, c.members.Digest()):
		c.sendBeat(p) // now both know
	}
	return same
}

// Membership records are compared by digest, and a record travels in two cases: each replica tells
// every other what it has changed itself; and a replica that finds another digest requests the
// record of one member, at most one per pullPause. So a change costs a small message for each
// member, however many members there are and however many change at once, and what got lost costs
// one record.
const (
	pullPause = 100 * time.Millisecond
	// maxPullBeats is the longest pause, in heartbeat intervals, between two requests to a member
	// that does not answer. The pause doubles from pullPause, and begins anew with an answer.
	maxPullBeats = 8
	// settlePause is how long a replica that forms a cluster waits for further changes before it
	// tells the others which record it has.
	settlePause = 50 * time.Millisecond
)

// tellMembers tells the other members what this replica has changed. While an operation waits for
// them to have the same memory, it also tells them what it has heard last. While this replica is
// not ready, it tells them which memory it has.
func (c cluster) tellMembers() {
	c.members.tellChanges(c.step, c.peers)
	c.pullAny(c.peers)
	switch {
	case c.members.ready && c.waits.Len() > 0:
		c.members.showAt = time.Time{}
		c.members.tellNews(c.step, c.peers)
	case c.members.ready:
		c.members.showAt = time.Time{}
	case c.now.Before(c.members.recalled.Add(settlePause)):
		c.members.showAt = c.members.recalled.Add(settlePause)
	default:
		c.members.showAt = time.Time{}
		c.show(c.peers)
	}
}

// onMembers merges a member's memory, or a part of it, into that of this replica. It accepts the
// memory of a former replica too, since memories only grow.
func (c cluster) onMembers(p *peer, ev Receive) error {
	var m pb.Members
	if err := decode(ev.Payload, &m); err != nil {
		return err
	}
	theirs, err := quorum.Decode(m.Members)
	if err != nil {
		return err
	}
	theirs.Chain = quorum.Chain{Epoch: m.Epoch, Cluster: m.Cluster}
	merged, err := c.members.Hear(theirs)
	if err != nil {
		c.emit(c.members.roster.troubled(fmt.Errorf("member %q at %s: %w", m.Name, p.Address, err)))
		return nil
	}
	if live := len(merged.Members()) - merged.Count(quorum.Gone); live > quorum.MaxLive {
		return malformed("%d members that are not gone, over the limit of %d", live, quorum.MaxLive)
	}
	whole := m.Digest == 0 || m.Gone != 0 && m.Gone == c.members.GoneDigest()
	if m.Digest == 0 {
		m.Digest = theirs.Digest()
	}
	if p.replica == ev.From {
		p.spoke, p.memory, p.heardAt = true, m.Digest, c.now
		if whole {
			p.merged, p.pulls, p.pullAt = m.Digest, 0, time.Time{}
		}
		p.titles(m.Least)
		c.members.compareLeast(c.step, p)
	}
	c.recall(merged)
	switch {
	case p.replica != ev.From:
	case m.Digest != merged.Digest() && p.memory != p.merged:
		c.pull(p)
	case !p.echoes(c.now, c.cfg.Grace, c.members.Digest()):
	case whole && c.members.unknownTo(theirs): // it takes this replica for a former one
		c.members.sendMembers(c.step, p, p.replica)
	default: // it has the same, or lacks something and requests it
		c.sendBeat(p)
	}
	p.turned = p.turned || p.replica == ev.From && m.Digest == merged.Digest()
	return nil
}

// askAnew asks the members whose memories have become equal to this replica's for what operations
// wait for.
func (c calls) askAnew() {
	for _, p := range c.peers {
		if !p.turned {
			continue
		}
		p.turned = false
		for o := range c.waits.All() {
			_, pushed := o.Task.(*writes)
			_, last := o.Range()
			if (o.Asked() || pushed) && !o.Task.has(p, last) {
				o.Task.ask(c, o, p)
			}
		}
	}
}
