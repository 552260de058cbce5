package testkit

import (
	"google.golang.org/protobuf/proto"

	"github.com/concord-go/concord/internal/simnet"
)

// Faults are the faults of one direction between two members; the zero value has none. Cut loses
// all messages, including those in flight when they would arrive. Loss and Duplicate are
// probabilities per message. Delay and a random addition below Jitter are added to the latency;
// order is kept unless Reorder allows messages to overtake each other. Bandwidth, in bytes per
// second, delays the messages that exceed it.
type Faults = simnet.Faults

// Link is one direction between two members. It belongs to their addresses and stays the same
// across restarts.
type Link struct {
	c        *Cluster
	sim      *simnet.Link
	from, to int
}

// Set replaces the faults.
func (l *Link) Set(f Faults) {
	l.c.note("link %d→%d: %+v", l.from, l.to, f)
	l.sim.Set(f)
}

// Faults returns the faults.
func (l *Link) Faults() Faults { return l.sim.Faults() }

// Next applies the faults, instead of those of the link, to the next message for which match
// returns true, and only to that message. Faults{Cut: true} loses it, Faults{Delay: d, Reorder:
// true} lets later messages overtake it. hit reports whether a message has matched. A nil match
// matches every message; see also Of and To. match must not use the cluster.
func (l *Link) Next(match func(Packet) bool, f Faults) (hit func() bool) {
	l.c.note("link %d→%d: for one message %+v", l.from, l.to, f)
	if match == nil {
		match = func(Packet) bool { return true }
	}
	return l.sim.Next(func(p simnet.Packet) bool { return match(l.c.packet(p)) }, f)
}

// Stats returns the counters of the link.
func (l *Link) Stats() Stats { return l.sim.Stats() }

// Stats counts messages between members: Sent, Delivered, Lost, Oversize, Invalid, and their Bytes.
type Stats = simnet.Stats

// Packet is a message between two members.
type Packet struct {
	From, To int    // members
	Target   string // id of the target actor
	Message  proto.Message
	Size     int  // in bytes
	Lost     bool // lost when it was sent; set only in Observe
}

// Of matches messages of type M.
func Of[M proto.Message](p Packet) bool {
	_, ok := p.Message.(M)
	return ok
}

// To matches messages to the actor with the given id.
func To(id string) func(Packet) bool {
	return func(p Packet) bool { return p.Target == id }
}

// address returns the address of a member. It fails the test if there is none: a test that cuts off
// nobody would assert nothing.
func (c *Cluster) address(i int) string {
	c.t.Helper()
	return c.Member(i).Address
}

// Link returns the direction from one member to another.
func (c *Cluster) Link(from, to int) *Link {
	c.t.Helper()
	return &Link{c, c.sim.Net.Link(c.address(from), c.address(to)), from, to}
}

// Cut stops all traffic between two members, both ways. See Link for one direction.
func (c *Cluster) Cut(a, b int) {
	c.t.Helper()
	c.note("cut %d–%d", a, b)
	c.sim.Net.Cut(c.address(a), c.address(b))
}

// Partition cuts every member of each side from the members of the other sides. Members that join
// later are not cut. All sides still reach the lease store; see Member.Store.
func (c *Cluster) Partition(sides ...[]int) {
	c.t.Helper()
	c.note("partition %v", sides)
	named := make([][]string, len(sides))
	for i, side := range sides {
		for _, m := range side {
			named[i] = append(named[i], c.address(m))
		}
	}
	c.sim.Net.Partition(named...)
}

// SetAll sets the faults of every direction between members, including members that join later.
func (c *Cluster) SetAll(f Faults) {
	c.note("all links: %+v", f)
	c.faults = f
	c.sim.Net.SetAll(f)
}

// Heal ends all faults of links, of connections to the lease store, and of disks. It does not
// restore lost messages, thaw frozen members or change clocks.
func (c *Cluster) Heal() {
	c.note("heal")
	c.faults = Faults{}
	c.sim.Net.Heal()
	for _, m := range c.Members() {
		m.Store.heal()
		m.disk.heal()
	}
}

// Observe calls f for every message between members when it is sent, in the goroutine of the
// sender. f must not use the cluster.
func (c *Cluster) Observe(f func(Packet)) {
	c.sim.Net.Observe(func(p simnet.Packet) {
		if p.Verdict != simnet.Held { // reported again when it is sent
			f(c.packet(p))
		}
	})
}

// Stats returns the sum over all links.
func (c *Cluster) Stats() Stats { return c.sim.Net.Stats() }

func (c *Cluster) packet(p simnet.Packet) Packet {
	return Packet{
		From: indexOf(p.From), To: indexOf(p.To), Target: p.Target,
		Message: p.Message, Size: p.Size,
		Lost: p.Verdict != simnet.Carried,
	}
}
