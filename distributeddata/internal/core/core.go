package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// Core is one replica. Its methods are not safe for concurrent use.
type Core struct {
	cfg    Config
	ledger            // what is held; other files read it, and change it by its transitions
	open   []*working // what the own event that has not ended yet does, by key
	openAs causal.Dot // that event
	lags   []Lag      // of the members, at the last heartbeat
	past   past       // of this process, before this life

	peers         []*peer // by member id
	leaving       bool    // acknowledges nothing any more [R53]
	ready         bool    // refilled since the start: may acknowledge and count in quorums [R17]
	roll          roll    // who is counted in quorums
	window        window
	base          base      // that vectors are told as differences from [R40]
	bases         []known   // it, and those of others
	fetch         *fetch    // the base under way to us
	fetchAfter    time.Time // one was no good: no other before
	awaiting      []Receive // messages that name bases that are not known
	awaitingBytes int
	incoming      *request           // the answer under way to us
	outgoing      map[string]*answer // the answers under way from us, by member
	behind        *lag
	askAfter      time.Time // an answer was no good: no other request until then
	ops           []*operation
	held          []heldProbe // questions that wait until we cover what they want
	nextID        uint64
	clock         uint64        // hybrid time, for registers
	last          causal.Vector // what whoever covers the newest own event has seen, that one included
	prints        ownPrints     // of own events
	heardOf       map[causal.Replica]heardPrints
	undos         []undo        // own events that some member may not cover yet
	revoked       *revoked      // own events that are to be done again [R57]
	retracted     []retraction  // events of replicas that were restored [R66]
	formers       []former      // replicas that ran for members until lately
	contested     time.Time     // an answer of another history came first
	pushed        uint64        // own events up to this one have been pushed
	copied        uint64        // own events up to this one are known to be at another replica
	told          causal.Vector // what the newest own push follows, that one included
	implied       causal.Vector // what pushes applied since then follow
	unpushed      int           // estimated bytes of those after it, and of the open one
	pushedAt      time.Time     // the last of them
	urgent        bool          // a call waits for the next
	beatAt        time.Time
	turn          int       // of the rotation of heartbeats
	unlike        time.Time // until then others have probably not seen the same
	scrub         scrub
	distrust      bool          // the last comparison of keys went wrong
	stirred       bool          // something that operations wait for may have come
	due           time.Time     // when the next of them has to be looked at
	calls         int           // that wait for them
	deadlines     deadlines     // of these calls
	settled       causal.Vector // seen when they were

	disk    disk
	now     time.Time
	begun   Keys  // what was held when this step began
	taking  Event // what hands a state over to it
	effects []Effect
	touched []string // keys changed in this step
	stats   Stats

	enc    encoder      // of pushes
	events []deltaEvent // of a push
}

// peer is what is known of another member.
type peer struct {
	Member
	replica causal.Replica // 0 until the first beat
	ready   bool
	voice
	seen  causal.Vector // last vector heard, without news
	news  causal.Vector // what pushes have told since
	acked uint64        // it covers our events up to this one
	pacing
	askAgain time.Time        // for a refill
	request  uint64           // the last request it made
	asked    time.Time        // when that came
	owed     uint64           // it wants to hear when we cover its events up to this one
	pushed   []sent           // pushed and not acknowledged yet
	inFlight int              // bytes of these
	kept     causal.Vector    // what it said that it has, when it did not leave
	parts    bool             // it has said that it leaves
	heardOf  uint64           // digest of seenThen
	seenThen causal.Vector    // the last vector it told in full
	toldOf   uint64           // digest of the last vector that was told to it in full
	opinion  opinion          // of our state, when vectors were last equal
	cleared  []causal.Replica // it has no retracted events of these
}

type sent struct {
	n    uint64
	size int
}

// take notes what p has seen. Little is kept apart: to raise a few entries of a large vector costs more.
func (p *peer) take(v causal.Vector) {
	if v.Len() > fewReplicas || p.news.Len() > fewReplicas {
		p.seen = v.Join(p.vector())
	} else {
		p.news = p.news.Join(v)
	}
}

// vector returns what p is known to have seen.
func (p *peer) vector() causal.Vector {
	p.seen, p.news = p.seen.Join(p.news), causal.Vector{}
	return p.seen
}

// lag notes that others have seen more, which may still be on its way to us.
type lag struct {
	vector causal.Vector
	member string
	since  time.Time
}

// New returns a replica that holds nothing and knows nobody.
func New(cfg Config) *Core {
	c := &Core{
		cfg:      cfg,
		ledger:   newLedger(cfg.NewReplica(), cfg.Reach),
		outgoing: map[string]*answer{},
		heardOf:  map[causal.Replica]heardPrints{},
		window:   window{count: cfg.WindowCount, bytes: cfg.WindowBytes},
	}
	if cfg.Disk != nil {
		c.disk = disk{cfg: cfg.Disk, phase: DiskLoading}
	}
	return c
}

// Replica returns the id of this incarnation.
func (c *Core) Replica() causal.Replica { return c.me }

// Seen returns the vector of all events that the state contains.
func (c *Core) Seen() causal.Vector { return c.seen }

// Keys returns the state, a snapshot: the atoms of each key. Some keys may hold nothing but marks.
func (c *Core) Keys() Keys { return c.keys }

// Ready reports whether the replica has been refilled since its start, and its disk, if it has one, works.
func (c *Core) Ready() bool { return c.ready && c.disk.sound() }

// Stats returns the counts since the start.
func (c *Core) Stats() Stats {
	s := c.stats
	s.LogBytes = c.log.size
	if r := c.incoming; r != nil {
		s.Filling, s.Filled, s.ToFill = true, r.stage.records, r.stage.head.records
	}
	return s
}

// Step takes one input. The effects are valid until the next call.
func (c *Core) Step(now time.Time, ev Event) []Effect {
	c.now, c.begun, c.effects, c.touched = now, c.keys, c.effects[:0], c.touched[:0]
	c.taking = handsOver(ev)
	if c.loading(ev) {
		c.taking = nil
		return c.effects
	}
	if !c.gathers(ev) {
		c.push()
	}
	c.input(ev)
	if c.formDue() {
		c.push()
	}
	c.settle()
	c.gate()
	c.taking = nil
	return c.effects
}

// input takes one input.
func (c *Core) input(ev Event) {
	switch ev := ev.(type) {
	case View:
		c.view(ev.Others)
	case Receive:
		c.receive(ev)
	case Update:
		c.update(ev)
	case Read:
		c.read(ev)
	case Drain:
		c.drain(ev)
	case Forget:
		c.forget(ev)
	case Inherit:
		c.inherit(ev.Old)
	case RecordLoaded:
		c.recordLoaded(ev)
	case RecordSwapped:
		c.recordSwapped(ev)
	case Wake, Loaded:
	case Committed:
		c.committed(ev)
	case Flush:
		c.flush(ev)
	default:
		panic(fmt.Sprintf("core: unknown event %T", ev))
	}
}

// settle brings everything up to date that may follow from any event or from the time that passed.
func (c *Core) settle() {
	c.watchDisk()
	c.drainWindow()
	c.beats()
	c.pursueFetch()
	c.expireAnswers()
	c.nudgeAnswer()
	c.fetchRestored()
	c.refill()
	c.admit()
	c.reissue()
	c.catchUp()
	c.mend()
	c.acknowledge()
	c.answerHeld()
	if !c.settled.Equal(c.seen) { // reads wait for it
		c.settled, c.stirred = c.seen, c.stirred || c.reading()
	}
	c.askAnew()
	c.settleOps()
	c.tellMembers()
	if len(c.touched) > 0 {
		slices.Sort(c.touched)
		c.emit(Changed{slices.Compact(c.touched)})
	}
}

// NextWake returns when Step wants a Wake, at the latest.
func (c *Core) NextWake() time.Time {
	if c.disk.phase == DiskLoading {
		return c.now.Add(c.cfg.BeatInterval)
	}
	at := c.beatAt
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if c.unpushed > 0 {
		earlier(c.pushDue())
	}
	if c.incoming != nil {
		earlier(c.incoming.deadline)
		earlier(c.incoming.nudge)
	} else if c.behind != nil {
		earlier(c.behind.since.Add(c.cfg.Grace))
	}
	if len(c.ops) > 0 {
		earlier(c.due)
		if c.stirred {
			earlier(c.now)
		}
	}
	earlier(c.roll.tellAt)
	for _, a := range c.outgoing {
		earlier(a.deadline)
	}
	if c.fetch != nil {
		earlier(c.fetch.nudge)
	}
	c.diskWake(earlier)
	return at
}

// pushDue is when the own events that have been gathered are to be pushed.
func (c *Core) pushDue() time.Time {
	if since := c.now.Sub(c.pushedAt); c.urgent || since < 0 || since >= pushPause {
		return c.now
	}
	return c.pushedAt.Add(pushPause)
}

// gathers reports whether own events go on being gathered: an update is one, and an acknowledgement brings nothing
// of others and is answered with nothing.
func (c *Core) gathers(ev Event) bool {
	switch ev := ev.(type) {
	case Update:
		return true
	case Receive:
		return ev.Manifest == wire.ReplicatorAck && c.now.Before(c.pushDue())
	}
	return false
}

// note sees to all that follows from a change of the ledger.
func (c *Core) note(ch change) {
	c.touched = append(c.touched, ch.keys...)
	c.stats.Events += uint64(ch.own)
	c.stats.Applied += uint64(ch.applied)
	if ch.own > 0 {
		c.last = c.seen
	}
	if ch.skipped || ch.applied > maxDifferences {
		c.jump()
	}
}

func (c *Core) emit(e Effect) {
	c.reach("effect")
	c.effects = append(c.effects, e)
}

func (c *Core) send(p *peer, m wire.Manifest, payload []byte) {
	c.emit(Send{Member: p.ID, To: p.replica, Manifest: m, Payload: payload})
}

// peer returns the peer that runs for a member of the view.
func (c *Core) peer(member string) *peer {
	i, ok := slices.BinarySearchFunc(c.peers, member, func(p *peer, id string) int { return strings.Compare(p.ID, id) })
	if !ok {
		return nil
	}
	return c.peers[i]
}

// peerOf returns the peer whose present replica is r.
func (c *Core) peerOf(r causal.Replica) *peer {
	for _, p := range c.peers {
		if p.replica == r {
			return p
		}
	}
	return nil
}

// running returns the present replicas of the members, this one included.
func (c *Core) running() map[causal.Replica]bool {
	runs := make(map[causal.Replica]bool, len(c.peers)+1)
	runs[c.me] = true
	for _, p := range c.peers {
		runs[p.replica] = true
	}
	return runs
}

// view takes the members other than this one [R21]. What is known of the gone is dropped; what they
// did stays.
func (c *Core) view(others []Member) {
	slices.SortFunc(others, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	others = slices.CompactFunc(others, func(a, b Member) bool { return a.ID == b.ID })
	next := make([]*peer, 0, len(others))
	for _, m := range others {
		p := c.peer(m.ID)
		if p == nil {
			p = &peer{}
		}
		p.Member = m
		next = append(next, p)
	}
	before := c.peers
	c.peers = next
	for _, p := range before {
		if c.peer(p.ID) == nil {
			c.replaced(p.replica)
		}
	}
	c.stirred, c.roll.viewed = true, true
	c.roll.version++
	for id := range c.outgoing {
		if c.peer(id) == nil {
			delete(c.outgoing, id)
		}
	}
	if c.incoming != nil && c.peer(c.incoming.member) == nil {
		c.incoming = nil
	}
	for _, p := range c.peers {
		if p.replica == 0 {
			c.sendBeat(p)
		}
	}
}
