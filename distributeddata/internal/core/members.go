package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// roll is what a replica knows of the members that its quorums are counted over. The memory alone
// determines which members those are; the view only says which of them can be reached.
type roll struct {
	memory
	inc      incarnation // of this replica; number 0 until it has taken its place
	takeAt   time.Time   // earliest time at which it takes its place again
	entering bool        // it is a newcomer, which has not counted yet [M3]
	counted  bool        // it has counted in quorums
	// filled: it has counted, or one that counts has answered it since its start.
	filled bool
	viewed bool // it has received a view
	// resigned: it counted when it was marked as going, so it helps to remove members [M5].
	resigned  bool
	leaving   bool                    // it wants to be forgotten, in order [M4]
	usurper   causal.Replica          // the last reported later process of this name; 0: none
	usurpers  int                     // how often a usurper took the place
	usurperAt time.Time               // when the last usurper was last seen
	changed   bool                    // changed by this replica: tell the other members at once
	absent    map[string]time.Time    // members that cannot be reached, and since when
	places    map[string]string       // addresses, by name
	parted    map[causal.Replica]bool // replicas that have said that they are leaving [R53]
	tellAt    time.Time               // when to send a memory that was held back
	version   int                     // changes whenever the Rollcall does
	wire      []byte                  // the encoded memory
	wireOf    uint64                  // the digest of that memory
	told      *Rollcall               // the last Rollcall
	roster    roster                  // the record behind the memory [M9]
}

// resign makes this replica one without a place.
func (r *roll) resign() {
	r.inc, r.entering, r.counted, r.filled, r.resigned = incarnation{}, false, false, false, false
}

// voice is what a peer has said under the current memory [M1], and the member that it is in that
// memory.
type voice struct {
	name     string // its member's name in the memory; empty: it has none
	votes    bool   // it is the present incarnation of a member that counts and stays
	goes     bool   // it is the present incarnation of a member that is going
	memory   uint64 // digest of its own memory, as last reported
	spoke    bool   // it has reported a memory
	turned   bool   // its memory has become equal to this replica's: ask it again
	leaving  bool
	vouches  bool          // it has said, as a replica that counts, what it covers:
	counted  uint64        // this replica's events up to this one,
	sure     causal.Vector // and this vector
	gave     bool          // it has answered a request since this replica's start
	answered bool          // it has answered one under this memory, as a replica that counts
	refilled bool          // it has answered one under this memory, counting or not
	entering bool          // its answer said that it is a newcomer that has not counted yet
	whole    bool          // its answer said that its disk has all it ever acknowledged
	resigned bool          // it says that it counted when it was marked as going
	told     uint64        // digest of the memory that it was last sent
	least    uint32        // its MinMembers, as last reported; 0 if it counts in no quorum
	titled   bool          // it has reported its MinMembers
	heardAt  time.Time
}

// silence forgets everything said under another memory.
func (v *voice) silence() {
	v.vouches, v.counted, v.sure = false, 0, causal.Vector{}
	v.answered, v.refilled, v.entering, v.resigned, v.whole = false, false, false, false, false
}

// speaks reports whether p's word counts: p stays, and has said what it covers.
func (p *peer) speaks() bool { return p.votes && p.ready && p.vouches }

// helps reports whether p's word counts in a removal. Members that are going help as well: they no
// longer acknowledge anything, so what a majority of all had seen contains every write from before
// the mark.
func (p *peer) helps() bool { return p.speaks() || p.goes && p.resigned && p.vouches }

// vouched records that p, which counts, covers v.
func (c *Core) vouched(p *peer, v causal.Vector) {
	p.vouches, p.sure = true, p.sure.Join(v)
	c.stirred = true
}

// answered records that p has answered a request for what this replica lacks.
func (c *Core) answered(p *peer, h head) {
	p.gave = true
	c.roll.filled = c.roll.filled || h.ready
	if h.members != c.roll.digest {
		return
	}
	p.refilled, p.answered, p.entering, p.whole = true, h.ready && p.votes, h.entering,
		h.kept && p.votes
	if h.ready {
		c.vouched(p, h.head)
	}
}

// size returns the number of members that quorums are counted over.
func (c *Core) size() int { return max(c.roll.size, c.cfg.MinMembers, 1) }

// own returns what is remembered of this member.
func (c *Core) own() remembered { return c.roll.of(c.cfg.Member) }

// identify determines which member p is.
func (c *Core) identify(p *peer) {
	r := c.roll.at(p.replica)
	p.name, p.votes, p.goes = r.name, r.rank == in, r.rank == going
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
func (c *Core) recall(m memory) {
	if m.digest == c.roll.digest {
		c.roll.chain = m.chain
		return
	}
	c.placed(m)
	c.replacedIn(m)
	c.roll.memory = m
	c.reconsider()
	for _, p := range c.peers {
		p.turned, p.askAgain = p.spoke && p.memory == m.digest, time.Time{}
	}
	for _, o := range c.ops {
		o.task = o.task.anew()
	}
	for name := range c.roll.places {
		if c.roll.of(name).rank == absent {
			delete(c.roll.places, name)
		}
	}
	maps.DeleteFunc(c.roll.parted, func(r causal.Replica, _ bool) bool {
		return c.roll.at(r).rank == absent && c.peerOf(r) == nil
	})
	c.stirred = true
}

// reconsider determines the roles of this replica and the others in the current memory. Nothing
// said under another memory counts.
func (c *Core) reconsider() {
	c.roll.version++
	own := c.own()
	if own.inc == c.roll.inc {
		c.roll.usurper = 0
	}
	c.roll.resigned = (c.ready || c.roll.resigned) && own.rank == going && own.inc == c.roll.inc
	if c.ready && (own.rank != in || own.inc != c.roll.inc) {
		c.ready = false
		if own.inc == c.roll.inc && !c.roll.leaving {
			c.emit(Forgotten{})
		}
	}
	for _, p := range c.peers {
		p.silence()
		c.identify(p)
	}
}

// change installs a memory that this replica has changed; the other members receive it at once.
func (c *Core) change(m memory) {
	c.recall(m)
	c.roll.changed = true
}

// under records the memory under which p speaks, and reports whether it is that of this replica
// [M1].
func (c *Core) under(p *peer, digest uint64) bool {
	same := digest == c.roll.digest
	if same && (!p.spoke || p.memory != digest) {
		p.turned, c.stirred = true, true
	}
	p.spoke, p.memory, p.heardAt = true, digest, c.now
	if !same {
		c.exchange(p)
	}
	return same
}

// exchange sends this replica's memory to p, now or soon. p has a different memory and answers with
// it.
func (c *Core) exchange(p *peer) {
	if c.now.Before(p.tellAt) {
		if p.told != c.roll.digest && (c.roll.tellAt.IsZero() || p.tellAt.Before(c.roll.tellAt)) {
			c.roll.tellAt = p.tellAt
		}
		return
	}
	p.told, p.tellAt = c.roll.digest, c.now.Add(min(c.cfg.Grace, tellPause))
	c.sendMembers(p, p.replica)
}

// tellPause is the minimum time between two memories sent to a member.
const tellPause = 100 * time.Millisecond

// catchUpTelling sends the memory to members that were sent another one just before. However often
// the memory changes, a member is sent one per tellPause.
func (c *Core) catchUpTelling() {
	if c.roll.tellAt.IsZero() || c.now.Before(c.roll.tellAt) {
		return
	}
	c.roll.tellAt = time.Time{}
	for _, p := range c.peers {
		if p.replica != 0 && p.told != 0 && p.told != c.roll.digest && p.memory != c.roll.digest {
			c.exchange(p)
		}
	}
}

func (c *Core) sendMembers(p *peer, to causal.Replica) {
	if c.roll.wire == nil || c.roll.wireOf != c.roll.digest {
		c.roll.wireOf = c.roll.digest
		c.roll.wire = encode(&pb.Members{Members: c.roll.out(), Name: c.cfg.Member,
			Least: uint32(c.cfg.MinMembers), Epoch: c.roll.epoch, Cluster: c.roll.cluster})
	}
	c.emit(Send{Member: p.ID, To: to, Manifest: wire.ReplicatorMembers, Payload: c.roll.wire})
}

// tellMembers sends the memory to the other members if this replica has changed it. It also does
// so, with what this replica has heard, while an operation waits for them to have the same memory.
func (c *Core) tellMembers() {
	c.catchUpTelling()
	if !c.roll.changed && len(c.ops) == 0 && c.ready {
		return
	}
	for _, p := range c.peers {
		if p.replica != 0 && (p.spoke || c.roll.changed) && p.memory != c.roll.digest &&
			p.told != c.roll.digest {
			if c.roll.changed { // its own changes are few, and may be its last words
				p.tellAt = time.Time{}
			}
			c.exchange(p)
		}
	}
	c.roll.changed = false
}

// onMembers merges a member's memory into that of this replica. It accepts the memory of a former
// replica too, since memories only grow.
func (c *Core) onMembers(p *peer, ev Receive) error {
	var m pb.Members
	if err := decode(ev.Payload, &m); err != nil {
		return err
	}
	theirs, err := memoryIn(m.Members)
	if err != nil {
		return err
	}
	theirs.chain = chain{m.Epoch, m.Cluster}
	merged, err := c.accept(theirs)
	if err != nil {
		c.trouble(fmt.Errorf("member %q at %s: %w", m.Name, p.Address, err))
		return nil
	}
	if live := len(merged.all) - merged.count(gone); live > maxLive {
		return malformed("%d members that are not gone, over the limit of %d", live, maxLive)
	}
	if p.replica == ev.From {
		p.spoke, p.memory, p.heardAt = true, theirs.digest, c.now
		c.compareLeast(p, &m)
	}
	c.recall(merged)
	switch {
	case p.replica != ev.From:
	case theirs.digest == merged.digest:
		p.turned = true
		if c.echoes(p) {
			c.sendBeat(p)
		}
	default:
		c.exchange(p)
	}
	return nil
}

// compareLeast reports a member that has a different MinMembers.
func (c *Core) compareLeast(p *peer, m *pb.Members) {
	if int(m.Least) != c.cfg.MinMembers && (!p.titled || p.least != m.Least) {
		c.emit(Unequal{Member: m.Name, Least: int(m.Least)})
	}
	p.titled, p.least = true, m.Least
}

// askAnew asks the members whose memories have become equal to this replica's for what operations
// wait for.
func (c *Core) askAnew() {
	for _, p := range c.peers {
		if !p.turned {
			continue
		}
		p.turned = false
		for _, o := range c.ops {
			_, pushed := o.task.(*writes)
			if (o.asked || pushed) && !o.task.has(p, o.latest()) {
				o.task.ask(c, o, p)
			}
		}
	}
}

// latest returns the event that the last of the calls waits for, or 0.
func (o *operation) latest() uint64 {
	if len(o.callers) == 0 {
		return 0
	}
	return o.callers[len(o.callers)-1].n
}

// short says how far an operation has got for a call.
func (c *Core) short(w *caller, s standing) *Short {
	out := &Short{Needed: s.need, Answered: s.self, Counted: c.size()}
	took := map[string]bool{}
	for _, p := range c.peers {
		switch {
		case p.replica != 0 && w.op.task.has(p, w.n):
			out.Answered++
			took[p.name] = true
		case p.name == "":
			out.Missing = append(out.Missing, p.ID)
		}
	}
	for _, r := range c.roll.all {
		if (r.rank == in || r.rank == going) && r.name != c.cfg.Member && !took[r.name] {
			out.Missing = append(out.Missing, r.name)
		}
	}
	slices.Sort(out.Missing)
	if r, ok := w.op.task.(*removal); ok {
		out.Handed = r.victim == c.cfg.Member
	}
	return out
}

// Place returns the address at which a member was last seen, or "" if it is unknown.
func (c *Core) Place(name string) string { return c.roll.places[name] }
