package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// operation is one that waits for other replicas.
type operation struct {
	id       uint64
	kind     opKind
	level    Level
	n        uint64        // write, drain: own event that has to be covered
	target   causal.Vector // read: what this replica has to cover
	fixed    bool          // read: enough have answered, the target stands
	answers  []probed      // read
	deadline time.Time
}

type opKind uint8

const (
	write opKind = iota
	read
	drain
)

type probed struct {
	member  string
	replica causal.Replica
	seen    causal.Vector
}

// startWrite waits until enough replicas cover this one's newest event. An update that changed
// nothing waits for the newest event before it: what its caller read is then on as many replicas.
func (c *Core) startWrite(id uint64, level Level, deadline time.Time) {
	o := &operation{id: id, kind: write, level: level, n: c.seen.Get(c.me), deadline: deadline}
	c.start(o)
}

// read asks the others for what they have seen; it ends when this replica has seen what enough of
// them had.
func (c *Core) read(ev Read) {
	o := &operation{id: ev.ID, kind: read, level: ev.Level, deadline: ev.Deadline}
	if ev.Level.Kind != Local {
		for _, p := range c.peers {
			c.probe(p, o)
		}
	}
	c.start(o)
}

func (c *Core) drain(ev Drain) {
	c.start(&operation{id: ev.ID, kind: drain, n: c.seen.Get(c.me), deadline: ev.Deadline})
}

func (c *Core) start(o *operation) { c.ops = append(c.ops, o) }

func (c *Core) probe(p *peer, o *operation) {
	if p.replica != 0 {
		c.send(p, wire.ReplicatorProbe, encode(&pb.Probe{Id: o.id}))
	}
}

// probeAgain asks a new replica for the reads under way.
func (c *Core) probeAgain(p *peer) {
	for _, o := range c.ops {
		if o.kind == read && !o.fixed {
			c.probe(p, o)
		}
	}
}

func (c *Core) onProbe(p *peer, payload []byte) error {
	var m pb.Probe
	if err := decode(payload, &m); err != nil {
		return err
	}
	c.send(p, wire.ReplicatorProbeReply, encode(&pb.ProbeReply{Id: m.Id, Ready: c.ready, Seen: vectorOut(c.seen)}))
	return nil
}

func (c *Core) onProbeReply(p *peer, payload []byte) error {
	var m pb.ProbeReply
	if err := decode(payload, &m); err != nil {
		return err
	}
	v, err := vectorIn(m.Seen)
	if err != nil {
		return err
	}
	p.ready = m.Ready
	c.heard(p, v)
	for _, o := range c.ops {
		if o.kind == read && o.id == m.Id && !o.fixed && m.Ready {
			o.answers = append(o.answers, probed{p.ID, p.replica, v})
		}
	}
	return nil
}

// settleOps ends the operations that have what they need, or no time left.
func (c *Core) settleOps() {
	c.ops = slices.DeleteFunc(c.ops, func(o *operation) bool {
		have, need, missing := c.progress(o)
		switch {
		case have >= need && o.target.Leq(c.seen):
			c.emit(Done{ID: o.id})
		case !c.now.Before(o.deadline):
			c.emit(Done{ID: o.id, Short: &Short{Needed: need, Answered: have, Missing: missing}})
		default:
			return false
		}
		return true
	})
}

// progress counts the replicas that take part in o at this moment, in the view of this moment [R18].
func (c *Core) progress(o *operation) (have, need int, missing []string) {
	need = o.level.need(c.size())
	if o.fixed {
		c.chase(o)
		return need, need, nil
	}
	if o.kind == drain {
		need = min(1, len(c.peers))
		if o.n == 0 {
			need = 0
		}
	} else if c.ready || o.level.Kind == Local {
		have = 1
	}
	if o.kind == read {
		c.dropAnswers(o)
	}
	for _, p := range c.peers {
		if o.has(p) {
			have++
		} else {
			missing = append(missing, p.ID)
		}
	}
	if o.kind == read && have >= need {
		o.fixed = true
		for _, a := range o.answers {
			o.target = o.target.Join(a.seen)
		}
		c.chase(o)
	}
	return have, need, missing
}

// chase sees to it that this replica comes to cover the target of a read.
func (c *Core) chase(o *operation) {
	for _, a := range o.answers {
		if p := c.peer(a.member); p != nil && !a.seen.Leq(c.seen) {
			c.noteLag(p, a.seen)
		}
	}
}

// has reports whether p takes part in o.
func (o *operation) has(p *peer) bool {
	if p.replica == 0 {
		return false
	}
	if o.kind == read {
		return slices.ContainsFunc(o.answers, func(a probed) bool { return a.member == p.ID && a.replica == p.replica })
	}
	return p.ready && p.acked >= o.n
}

// dropAnswers forgets those of replicas that are not in the view any more, or were replaced.
func (c *Core) dropAnswers(o *operation) {
	o.answers = slices.DeleteFunc(o.answers, func(a probed) bool {
		p := c.peer(a.member)
		return p == nil || p.replica != a.replica
	})
}

// failOps ends all operations: the id they were made under is gone.
func (c *Core) failOps() {
	for _, o := range c.ops {
		have, need, missing := c.progress(o)
		c.emit(Done{ID: o.id, Short: &Short{Needed: need, Answered: have, Missing: missing}})
	}
	c.ops = nil
}
