package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// vouched records that p, which counts, covers v.
func (c *Core) vouched(p *peer, v causal.Vector) {
	p.vouches, p.sure = true, p.sure.Join(v)
	c.waits.Stir()
}

// answered records that p has answered a request for what this replica lacks.
func (c *Core) answered(p *peer, h head) {
	p.gave = true
	c.roll.filled = c.roll.filled || h.ready
	if h.members == c.roll.Digest() {
		c.counted(p, said{h.members, h.head, h.ready, h.entering, h.kept})
	}
}

// counted records what p has said under the memory of this replica, which covers what p had seen.
func (c *Core) counted(p *peer, s said) {
	p.refilled, p.answered, p.entering, p.whole = true, s.ready && p.votes, s.entering,
		s.kept && p.counts()
	if s.ready {
		c.vouched(p, s.seen)
	}
}

// takeHeartbeats counts heartbeats as answers, from when this replica has its place until it is
// ready.
func (c *Core) takeHeartbeats() {
	if c.ready || !c.roll.hasPlace() {
		return
	}
	for _, p := range c.peers {
		if s := p.said; s.covered(c.roll.Digest(), c.Seen()) &&
			(!p.refilled || s.ready && !p.answered) {
			c.roll.filled = c.roll.filled || s.ready
			c.counted(p, s)
		}
	}
}

// identify determines which member p is, and identifyAs records that.
func (c *Core) identify(p *peer) {
	c.identifyAs(p, c.roll.At(p.replica))
}

func (c *Core) identifyAs(p *peer, r quorum.Member) {
	p.name, p.votes, p.goes = r.Name, r.Rank == quorum.In, r.Rank == quorum.Going
	p.joins = r.Rank == quorum.Joining
	p.parts = c.roll.parted[p.replica]
	c.roll.version++
	if p.name != "" {
		if c.roll.places == nil {
			c.roll.places = map[string]string{}
		}
		c.roll.places[p.name] = p.Address
	}
}

// recall makes m the memory of this replica. Everything said under another memory no longer counts,
// and the operations that wait for it ask again [M1].
func (c *Core) recall(m quorum.Memory) {
	if m.Digest() == c.roll.Digest() {
		c.roll.Chain = m.Chain
		return
	}
	if c.cfg.Recorded {
		c.roll.placed(m, c.Replica(), c.now.Add(2*c.cfg.BeatInterval))
	}
	for _, r := range c.roll.Beyond(m) {
		next := m.Of(r.Name)
		if next.Inc != r.Inc {
			c.formers.replaced(r.Inc.Replica, c.now)
		}
		if next.Rank == quorum.Absent {
			delete(c.roll.places, r.Name)
		}
	}
	c.roll.news, c.roll.Memory, c.roll.recalled = m.Beyond(c.roll.Memory), m, c.now
	if c.roll.showAt.IsZero() {
		c.roll.showAt = c.now.Add(settlePause)
	}
	c.reconsider()
	for _, p := range c.peers {
		p.turned, p.askAgain = p.spoke && p.memory == m.Digest(), time.Time{}
	}
	for o := range c.waits.All() {
		o.Task = o.Task.anew()
	}
	for _, said := range []map[causal.Replica]bool{c.roll.parted, c.roll.leavers} {
		maps.DeleteFunc(said, func(r causal.Replica, _ bool) bool {
			return c.roll.At(r).Rank == quorum.Absent && c.peers.at(r) == nil
		})
	}
	c.waits.Stir()
}

// reconsider determines the roles of this replica and the others in the current memory. Nothing
// said under another memory counts.
func (c *Core) reconsider() {
	c.roll.version++
	own := c.roll.Own()
	c.knows(own.Inc)
	if own.Inc == c.roll.inc {
		c.roll.usurper = 0
	}
	c.roll.resigned = (c.ready || c.roll.resigned || c.disk.keeps() && c.disk.cfg.Behind == 0) &&
		own.Rank == quorum.Going && own.Inc == c.roll.inc
	if c.ready && (own.Rank != quorum.In || own.Inc != c.roll.inc) {
		c.ready = false
		if own.Inc == c.roll.inc && !c.roll.leaving {
			c.emit(Forgotten{})
		}
	}
	at := make(map[causal.Replica]quorum.Member, len(c.peers))
	for _, r := range c.roll.Members() {
		at[r.Inc.Replica] = r
	}
	for _, p := range c.peers {
		p.silence()
		c.identifyAs(p, at[p.replica])
	}
}

// change installs a memory that this replica has changed; the other members are told at once.
func (c *Core) change(m quorum.Memory) {
	c.roll.changed = append(c.roll.changed, m.Beyond(c.roll.Memory)...)
	c.recall(m)
}

// under records the memory under which p speaks, and reports whether it is that of this replica
// [M1].
func (c *Core) under(p *peer, digest uint64) bool {
	same := digest == c.roll.Digest()
	turned := same && (!p.spoke || p.memory != digest)
	if turned {
		p.turned = true
		c.waits.Stir()
	}
	p.spoke, p.memory, p.heardAt = true, digest, c.now
	switch {
	case !same:
		c.pull(p)
	case turned && p.told != digest && digest != 0 && p.echoes(c.now, c.cfg.Grace, c.roll.Digest()):
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

// spoken returns the digest of the memory under which this replica speaks. If it has counted, and
// its disk does not hold what it says, it speaks under none: its next process may know nothing of
// the newcomers that this one remembers, and be a cluster without them [M3].
func (c *Core) spoken() uint64 {
	if c.disk.ailing() && (c.roll.counted || c.disk.keptAs[0].Number > 0) {
		return 0
	}
	return c.roll.Digest()
}

// pull requests the memory of p, which differs from this replica's, unless all that it holds is
// here: then p lacks something, and requests it when it hears from this replica.
func (c *Core) pull(p *peer) {
	if !p.differs(c.roll.Digest()) || c.now.Before(p.pullAt) || c.now.Before(c.roll.pullAt) {
		return
	}
	pause := min(c.cfg.Grace, pullPause)
	c.roll.pullAt = c.now.Add(pause)
	p.pullAt = c.now.Add(min(pause<<min(p.pulls, 16), maxPullBeats*c.cfg.BeatInterval))
	p.pulls++
	m := c.newBeat()
	m.Pull, m.Gone = true, c.roll.GoneDigest()
	c.beat(p, m)
}

// pullAny requests the memory of another member that still differs, of one that counts if possible.
func (c *Core) pullAny() {
	if c.now.Before(c.roll.pullAt) {
		return
	}
	var from *peer
	for _, p := range c.peers {
		if p.differs(c.roll.Digest()) && !c.now.Before(p.pullAt) &&
			(from == nil || p.ready && !from.ready ||
				p.ready == from.ready && p.heardAt.After(from.heardAt)) {
			from = p
		}
	}
	if from != nil {
		c.pull(from)
	}
}

// sendMembers sends the whole memory.
func (c *Core) sendMembers(p *peer, to causal.Replica) {
	p.told, p.toldAt = c.roll.Digest(), c.now
	c.emit(Send{Member: p.ID, To: to, Manifest: wire.ReplicatorMembers, Payload: c.roll.whole()})
}

// answerPull sends p what it may lack of the memory: without the members that are gone if p, by the
// digest in its request, has the same. A replica that joins thus hears of them once.
func (c *Core) answerPull(p *peer, same uint64) {
	if same == 0 || c.cfg.Recorded || same != c.roll.GoneDigest() {
		c.sendMembers(p, p.replica)
		return
	}
	m := c.roll.encoded(c.roll.Present())
	m.Digest, m.Gone = c.roll.Digest(), same
	p.told, p.toldAt = c.roll.Digest(), c.now
	c.send(p, wire.ReplicatorMembers, encode(m))
}

// tellMembers tells the other members what this replica has changed. While an operation waits for
// them to have the same memory, it also tells them what it has heard last. While this replica is
// not ready, it tells them which memory it has.
func (c *Core) tellMembers() {
	if len(c.roll.changed) > 0 {
		part := c.roll.part(latest(c.roll.changed))
		for _, p := range c.peers {
			c.tell(p, part)
		}
		c.roll.changed = nil
	}
	c.pullAny()
	switch {
	case c.ready && c.waits.Len() > 0:
		c.roll.showAt = time.Time{}
		c.tellNews()
	case c.ready:
		c.roll.showAt = time.Time{}
	case c.now.Before(c.roll.recalled.Add(settlePause)):
		c.roll.showAt = c.roll.recalled.Add(settlePause)
	default:
		c.roll.showAt = time.Time{}
		c.show()
	}
}

func (c *Core) tell(p *peer, part []byte) {
	switch {
	case p.replica == 0 || p.memory == c.roll.Digest():
	case part == nil:
		c.sendMembers(p, p.replica)
	default:
		p.told, p.toldAt = c.roll.Digest(), c.now
		c.send(p, wire.ReplicatorMembers, part)
	}
}

// tellNews tells the members with another memory what this replica has heard last.
func (c *Core) tellNews() {
	var part []byte
	for _, p := range c.peers {
		if p.spoke && p.memory != c.roll.Digest() && p.told != c.roll.Digest() {
			if part == nil {
				part = c.roll.part(c.roll.news)
			}
			c.tell(p, part)
		}
	}
}

// show sends the members a heartbeat from which it cannot tell that they have the same memory, once
// for each memory, and requests theirs if they do not answer.
func (c *Core) show() {
	for _, p := range c.peers {
		if p.replica == 0 || !p.spoke || c.roll.Digest() == 0 || p.said.under(c.roll.Digest()) {
			continue
		}
		switch {
		case p.told != c.roll.Digest():
			c.sendBeat(p)
		case !c.now.Before(p.toldAt.Add(c.cfg.BeatInterval)):
			p.toldAt = c.now
			c.askBeat(p)
		}
	}
}

// latest returns the last entry of each member, ascending by name.
func latest(changes []quorum.Member) []quorum.Member {
	var m quorum.Memory
	for _, r := range changes {
		m = m.With(r)
	}
	return m.Members()
}

// onMembers merges a member's memory, or a part of it, into that of this replica. It accepts the
// memory of a former replica too, since memories only grow.
func (c *Core) onMembers(p *peer, ev Receive) error {
	var m pb.Members
	if err := decode(ev.Payload, &m); err != nil {
		return err
	}
	theirs, err := quorum.Decode(m.Members)
	if err != nil {
		return err
	}
	theirs.Chain = quorum.Chain{Epoch: m.Epoch, Cluster: m.Cluster}
	merged, err := c.roll.Hear(theirs)
	if err != nil {
		c.emit(c.roll.roster.troubled(fmt.Errorf("member %q at %s: %w", m.Name, p.Address, err)))
		return nil
	}
	if live := len(merged.Members()) - merged.Count(quorum.Gone); live > quorum.MaxLive {
		return malformed("%d members that are not gone, over the limit of %d", live, quorum.MaxLive)
	}
	whole := m.Digest == 0 || m.Gone != 0 && m.Gone == c.roll.GoneDigest()
	if m.Digest == 0 {
		m.Digest = theirs.Digest()
	}
	if p.replica == ev.From {
		p.spoke, p.memory, p.heardAt = true, m.Digest, c.now
		if whole {
			p.merged, p.pulls, p.pullAt = m.Digest, 0, time.Time{}
		}
		p.titles(m.Least)
		c.compareLeast(p)
	}
	c.recall(merged)
	switch {
	case p.replica != ev.From:
	case m.Digest != merged.Digest() && p.memory != p.merged:
		c.pull(p)
	case !p.echoes(c.now, c.cfg.Grace, c.roll.Digest()):
	case whole && c.roll.unknownTo(theirs): // it takes this replica for a former one
		c.sendMembers(p, p.replica)
	default: // it has the same, or lacks something and requests it
		c.sendBeat(p)
	}
	p.turned = p.turned || p.replica == ev.From && m.Digest == merged.Digest()
	return nil
}

// compareLeast compares the MinMembers of p with that of this replica. It reports once that they
// differ.
func (c *Core) compareLeast(p *peer) {
	if p.least > 0 {
		c.roll.lowest = min(c.roll.lowest, int(p.least))
	}
	if p.titled && !p.unequal && p.name != "" && int(p.least) != c.cfg.MinMembers {
		p.unequal = true
		c.emit(Unequal{Member: p.name, Least: int(p.least)})
	}
}

// askAnew asks the members whose memories have become equal to this replica's for what operations
// wait for.
func (c *Core) askAnew() {
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

// short says how far a group has got for a call.
func (c *Core) short(o *group, w waiting.Call, s standing) *Short {
	out := &Short{Needed: s.need, Answered: s.self, Counted: c.roll.Size()}
	took := map[string]bool{}
	for _, p := range c.peers {
		switch {
		case p.replica != 0 && o.Task.has(p, w.N):
			out.Answered++
			took[p.name] = true
		case p.name == "":
			out.Missing = append(out.Missing, p.ID)
		}
	}
	for _, r := range c.roll.Members() {
		if r.Counts() && r.Name != c.cfg.Member && !took[r.Name] {
			out.Missing = append(out.Missing, r.Name)
		}
	}
	slices.Sort(out.Missing)
	if r, ok := o.Task.(*removal); ok {
		out.Handed = r.victim == c.cfg.Member
		out.AllLeave = out.Handed && c.roll.othersLeave(c.peers)
	}
	return out
}

// Place returns the address at which a member was last seen, or "" if it is unknown.
func (c *Core) Place(name string) string { return c.roll.places[name] }
