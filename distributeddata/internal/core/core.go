package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/transfer"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
)

// Core is one replica. Its methods are not safe for concurrent use.
type Core struct {
	cfg     Config
	history history.History
	group   commitGroup
	lags    []Lag // of the members, at the last heartbeat

	peers   peers
	members members // the members that quorums are counted over
	window  window
	bases   vectors
	in      intake
	out     outlet
	waits   waiting.Calls[Level, task] // calls that wait for other members
	probes  probes
	formers formers
	outbox  pushes // of own events
	rhythm  rhythm
	settled causal.Vector // seen when operations were last settled

	disk disk
	step
}

// New returns a replica that holds nothing and knows no other member.
func New(cfg Config) *Core {
	c := &Core{
		step:    step{reach: cfg.Reach},
		cfg:     cfg,
		history: history.New(cfg.NewReplica(), cfg.Reach),
		bases:   newVectors(cfg),
		in:      intake{transfer.NewIn[refilling](cfg.timing())},
		out:     outlet{transfer.NewOut[*answer](cfg.timing(), cfg.PartBytes)},
		members: newMembers(cfg),
		waits:   waiting.New[Level, task](cfg.BeatInterval),
		window:  window{count: cfg.WindowCount, bytes: cfg.WindowBytes},
	}
	if cfg.Disk != nil {
		c.disk = disk{cfg: cfg.Disk, phase: DiskLoading}
	}
	return c
}

// Replica returns the id of this incarnation.
func (c *Core) Replica() causal.Replica { return c.history.Replica() }

// Seen returns the vector of all events that the state contains.
func (c *Core) Seen() causal.Vector { return c.history.Seen() }

// Keys returns a snapshot of the state: the atoms of each key. Some keys may hold only marks.
func (c *Core) Keys() history.Keys { return c.history.Keys() }

// Ready reports whether the replica has been refilled since its start, and its disk, if it has one,
// works.
func (c *Core) Ready() bool { return c.members.ready && c.disk.sound() }

// Stats returns the counters since the start.
func (c *Core) Stats() Stats {
	s := c.stats
	s.LogBytes = c.history.LogBytes()
	if r := c.in.Content(); r != nil {
		s.Filling, s.Filled, s.ToFill = true, r.stage.records, r.stage.head.records
	}
	return s
}

// Step processes one event. The effects are valid until the next call.
func (c *Core) Step(now time.Time, ev Event) []Effect {
	c.now, c.begun, c.effects, c.touched = now, c.Keys(), c.effects[:0], c.touched[:0]
	if c.disk.absorbs(&c.step, ev) {
		return c.effects
	}
	c.taking = handsOver(ev)
	if !c.gathers(ev) {
		c.push()
	}
	c.input(ev)
	if _, ok := ev.(Update); ok && c.Unanswered() > 0 {
		c.taking = nil
		return c.effects // the rest is done when the open events end
	}
	if c.disk.formDue(c.now, c.herald().current()) {
		c.push()
	}
	c.settle()
	c.disk.gate(&c.step, c.herald().current(), c.outbox.Pushed())
	c.taking = nil
	return c.effects
}

// input dispatches one event.
func (c *Core) input(ev Event) {
	switch ev := ev.(type) {
	case View:
		c.view(ev.Others)
	case Receive:
		c.receive(ev)
	case Update:
		c.update(ev)
	case End:
		c.end()
	case Read:
		c.calls().read(ev)
	case Drain:
		c.calls().drain(ev)
	case Forget:
		c.calls().forget(ev)
	case Inherit:
		c.inherit(ev.Old)
	case RecordLoaded:
		c.cluster().recordLoaded(ev)
	case RecordSwapped:
		c.cluster().recordSwapped(ev)
	case Wake:
	case Loaded:
		c.cluster().adoptRows(ev.Image)
	case Committed:
		phase, err := c.disk.committed(c.now, ev)
		c.cluster().diskIs(phase, err, &c.out)
	case Flush:
		c.end()
		c.disk.flush(&c.step, ev)
	default:
		panic(fmt.Sprintf("core: unknown event %T", ev))
	}
}

// settle does everything that may follow from any event or from the passage of time.
func (c *Core) settle() {
	for d := &c.disk; len(d.pending) > 0 && d.phase != DiskLoading; d.pending = d.pending[1:] {
		c.input(d.pending[0])
	}
	if c.restored {
		c.beginAnew()
	}
	if c.disk.late(c.now, c.cfg.Patience) {
		c.cluster().diskIs(DiskStalled, ErrDiskSlow, &c.out)
	}
	calls := c.calls()
	if len(c.window.waiting) > 0 {
		c.inbox().drain()
	}
	c.beats()
	c.bases.pursue(&c.step, c.peers)
	c.in.Late(c.now)
	c.out.Late(c.now)
	c.in.nudge(&c.step, c.peers, &c.bases)
	calls.takeHeartbeats()
	c.in.refill(calls.herald, c.peers)
	// A sole member needs no other.
	for before := c.members.Digest() + 1; c.members.Digest() != before; {
		before = c.members.Digest()
		calls.admit()
	}
	c.disk.sortAside(&c.step, c.members.ready, calls.current())
	c.in.catchUp(calls.herald, c.peers)
	c.in.adoptMajority(calls.herald, c.peers)
	calls.acknowledge(c.peers)
	calls.answerHeld()
	if !c.settled.Equal(c.Seen()) { // reads wait for c.seen to rise
		if c.settled = c.Seen(); reading(&c.waits) {
			c.waits.Stir()
		}
	}
	calls.askAnew()
	calls.settleCalls()
	calls.tellMembers()
	if len(c.touched) > 0 {
		slices.Sort(c.touched)
		c.emit(Changed{slices.Compact(c.touched)})
	}
}

// NextWake returns the time by which Step wants a Wake.
func (c *Core) NextWake() time.Time {
	if c.disk.phase == DiskLoading {
		return c.now.Add(c.cfg.BeatInterval)
	}
	if c.Unanswered() > 0 {
		return c.group.since.Add(openPause) // what else is due is at most that late
	}
	at := c.rhythm.at
	earlier := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if c.outbox.Gathered() > 0 {
		earlier(c.outbox.due(c.now, &c.waits, c.peers))
	}
	c.in.Wake(earlier)
	c.out.Wake(earlier)
	earlier(c.waits.Wake(c.now))
	earlier(c.members.showAt)
	for _, p := range c.peers {
		if p.differs(c.members.Digest()) {
			earlier(later(p.pullAt, c.members.pullAt))
		}
	}
	if _, at, ok := c.bases.Fetching(); ok {
		earlier(at)
	}
	c.disk.wake(c.cfg.Patience, earlier)
	return at
}

// gathers reports whether own events continue to be gathered during ev. An update is an own event;
// an acknowledgement applies no foreign event and is not answered.
func (c *Core) gathers(ev Event) bool {
	switch ev := ev.(type) {
	case Update, End:
		return true
	case Receive:
		return ev.Manifest == wire.ReplicatorAck &&
			c.now.Before(c.outbox.due(c.now, &c.waits, c.peers))
	}
	return false
}

// view sets the other members [R28]. Knowledge about members that are no longer in view is dropped;
// their events stay.
func (c *Core) view(others []Member) {
	slices.SortFunc(others, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	others = slices.CompactFunc(others, func(a, b Member) bool { return a.ID == b.ID })
	next := make(peers, 0, len(others))
	for _, m := range others {
		p := c.peers.of(m.ID)
		if p == nil {
			p = &peer{expiry: c.cfg.Expiry}
		}
		p.Member = m
		next = append(next, p)
	}
	before := c.peers
	c.peers = next
	for _, p := range before {
		if c.peers.of(p.ID) == nil {
			c.formers.replaced(p.replica, c.now)
		}
	}
	c.members.viewed = true
	c.waits.Stir()
	c.members.version++
	c.out.Keep(func(member string) bool { return c.peers.of(member) != nil })
	if c.peers.of(c.in.From()) == nil {
		c.in.Lost(c.in.From())
	}
	for _, p := range c.peers {
		// Once, while many start one after the other.
		if p.replica == 0 && !c.now.Before(p.remindAt) {
			p.remindAt = c.now.Add(c.cfg.BeatInterval)
			c.herald().sendBeat(p)
		}
	}
}
