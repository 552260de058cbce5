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

// roll is what a replica knows of the members that its quorums are counted in. Which ones those are follows
// from the memory alone: the view only says which members can be talked to.
type roll struct {
	memory
	inc       incarnation             // of this replica; number 0 until it has taken its place
	takeAt    time.Time               // not before: it takes its place again
	entering  bool                    // it is a newcomer, which has not counted yet [M3]
	counted   bool                    // it has counted in quorums
	filled    bool                    // a replica that counts has answered it since its start, or it has counted itself
	viewed    bool                    // it has been told a view
	resigned  bool                    // it counted when it was marked as going: it helps to remove members [M5]
	leaving   bool                    // it wants to be forgotten, in order [M4]
	usurper   causal.Replica          // the later process of this name that has been told of; 0: none has the place
	usurpers  int                     // how often one took the place
	usurperAt time.Time               // when the last was seen last
	changed   bool                    // by this replica: the others are told at once
	absent    map[string]time.Time    // members that cannot be talked to, since when
	places    map[string]string       // addresses, by name
	parted    map[causal.Replica]bool // those that have said that they leave [R53]
	tellAt    time.Time               // when members are told that have been told another memory just before
	version   int                     // of what is told of all this
	wire      []byte                  // the memory as it is sent
	wireOf    uint64                  // the digest of that memory
	told      *Rollcall               // the last
	roster    roster                  // the record that this replica's memory is, where it is one [M9]
}

// resign makes this replica one that has no place yet.
func (r *roll) resign() {
	r.inc, r.entering, r.counted, r.filled, r.resigned = incarnation{}, false, false, false, false
}

// voice is what a peer has said under the memory of this moment [M1], and who it is in that.
type voice struct {
	name     string // in the memory; empty: it is not in there
	votes    bool   // it is the present incarnation of a member that counts and stays
	goes     bool   // or of one that is going
	memory   uint64 // digest of its own memory, as it said last
	spoke    bool   // it has said that
	turned   bool   // its memory has become the same as this replica's: it is to be asked again
	leaving  bool
	vouches  bool          // it said, as one that counts, what it covers:
	counted  uint64        // this replica's events up to this one,
	sure     causal.Vector // and these
	gave     bool          // it has answered a request since this replica's start
	answered bool          // it has answered one under this memory, as one that counts
	refilled bool          // or as any
	entering bool          // as a newcomer that has not counted yet
	whole    bool          // or as one whose disk has all that its member ever acknowledged
	resigned bool          // it says that it counted when it was marked as going
	told     uint64        // digest of the memory that it was sent last
	least    uint32        // its MinMembers, as it said last; 0 if it counts in no quorum
	titled   bool          // it has said so
	heardAt  time.Time
}

// silence forgets what was said under another memory.
func (v *voice) silence() {
	v.vouches, v.counted, v.sure = false, 0, causal.Vector{}
	v.answered, v.refilled, v.entering, v.resigned, v.whole = false, false, false, false, false
}

// speaks reports whether p's word counts: it has said what it covers, and stays.
func (p *peer) speaks() bool { return p.votes && p.ready && p.vouches }

// helps reports whether p's word counts in a removal: those that are going themselves help too. They
// acknowledge nothing any more, so what a majority of all had seen is what every write before the mark is in.
func (p *peer) helps() bool { return p.speaks() || p.goes && p.resigned && p.vouches }

// vouched notes that p, which counts, covers v.
func (c *Core) vouched(p *peer, v causal.Vector) {
	p.vouches, p.sure = true, p.sure.Join(v)
	c.stirred = true
}

// answered notes that p has answered a request for what this replica lacks.
func (c *Core) answered(p *peer, h head) {
	p.gave = true
	c.roll.filled = c.roll.filled || h.ready
	if h.members != c.roll.digest {
		return
	}
	p.refilled, p.answered, p.entering, p.whole = true, h.ready && p.votes, h.entering, h.kept && p.votes
	if h.ready {
		c.vouched(p, h.head)
	}
}

// size is the number of members that quorums are counted in.
func (c *Core) size() int { return max(c.roll.size, c.cfg.MinMembers, 1) }

// own is what is remembered of this member.
func (c *Core) own() remembered { return c.roll.of(c.cfg.Member) }

// identify finds out which member p is.
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

// recall makes m what this replica remembers. What was said under another memory counts no more, and whatever
// waits for it asks again [M1].
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
	maps.DeleteFunc(c.roll.parted, func(r causal.Replica, _ bool) bool { return c.roll.at(r).rank == absent && c.peerOf(r) == nil })
	c.stirred = true
}

// reconsider finds out what this replica and the others are in the memory of this moment. Nothing that was said under
// another one counts.
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

// change remembers something new of a member, and tells the others at once.
func (c *Core) change(m memory) {
	c.recall(m)
	c.roll.changed = true
}

// under notes under which memory p speaks, and reports whether it is that of this replica [M1].
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

// exchange sends p what this replica remembers, now or soon: p remembers something else, and answers in kind.
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

// tellPause is how long a member is not told another memory after it has been told one.
const tellPause = 100 * time.Millisecond

// catchUpTelling sends the memory to those that have been told another one just before: however often it changes, it is
// told once in a tellPause.
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
		c.roll.wire = encode(&pb.Members{Members: c.roll.out(), Name: c.cfg.Member, Least: uint32(c.cfg.MinMembers), Epoch: c.roll.epoch, Cluster: c.roll.cluster})
	}
	c.emit(Send{Member: p.ID, To: to, Manifest: wire.ReplicatorMembers, Payload: c.roll.wire})
}

// tellMembers tells the others what this replica has changed; or, while something waits for them to remember the
// same, what it has heard.
func (c *Core) tellMembers() {
	c.catchUpTelling()
	if !c.roll.changed && len(c.ops) == 0 && c.ready {
		return
	}
	for _, p := range c.peers {
		if p.replica != 0 && (p.spoke || c.roll.changed) && p.memory != c.roll.digest && p.told != c.roll.digest {
			if c.roll.changed { // its own changes are few, and may be its last words
				p.tellAt = time.Time{}
			}
			c.exchange(p)
		}
	}
	c.roll.changed = false
}

// onMembers merges what a member remembers into what this replica does. It takes that from a former replica too: what
// was remembered once is part of what is remembered now.
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

// compareLeast tells of a member that has another MinMembers than this one.
func (c *Core) compareLeast(p *peer, m *pb.Members) {
	if int(m.Least) != c.cfg.MinMembers && (!p.titled || p.least != m.Least) {
		c.emit(Unequal{Member: m.Name, Least: int(m.Least)})
	}
	p.titled, p.least = true, m.Least
}

// askAnew asks those that have come to remember the same as this replica what operations wait for.
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

// latest is the event that the last of the calls waits for, if it is a write.
func (o *operation) latest() uint64 {
	if len(o.callers) == 0 {
		return 0
	}
	return o.callers[len(o.callers)-1].n
}

// short says how far an operation has come for a call.
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

// Place returns the address at which a member was seen last; empty if it is not known.
func (c *Core) Place(name string) string { return c.roll.places[name] }
