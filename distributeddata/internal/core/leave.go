package core

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
	"github.com/concord-go/concord/internal/causal"
	pb "github.com/concord-go/concord/proto"
)

// ErrLeft rejects an update at a replica that has handed over all that it did, and ends. Nothing
// was done.
var ErrLeft = errors.New("core: this replica has handed over what it held, and ends")

// leave waits until a majority of the other members, ready or not, covers everything that this
// replica has seen [R29]. What it acknowledged to others, or received at its start, may be on
// no other member that stays. Then, if the member is to be forgotten, the removal starts.
type leave struct {
	want   causal.Vector
	forget bool
	// knows are the replicas that have answered a question of this task: they know that this one
	// leaves, since it said so before, and expect nothing of it when they leave themselves.
	knows []causal.Replica
}

func (l *leave) anew() task { return l }

// ask makes p fetch what it lacks without waiting for a heartbeat.
func (l *leave) ask(c calls, o *group, p *peer) {
	if !l.has(p, 0) {
		c.bases.probe(c.step, p, l.want, &pb.Probe{Id: o.ID()})
	}
}

// has reports whether p covers what this replica hands over. A member that is going does not count,
// since it leaves for good.
func (l *leave) has(p *peer, _ uint64) bool {
	return !p.parts && !p.goes && l.want.Leq(p.kept) && slices.Contains(l.knows, p.replica)
}

func (l *leave) advance(c calls, o *group) (s standing) {
	if l.want.Len() > 0 {
		s.need = min(c.members.heirs(c.peers), quorum.MajorityOf(c.members.Beside()))
	}
	if len(c.peers) == 0 && (s.need > 0 || c.cfg.MinMembers > 1 && c.history.Uncopied() > 0) {
		s.need, s.upTo = max(1, s.need), math.MaxUint64
		s.done = c.history.Rebuilt() // nobody misses it
		s.hopeless = !s.done
		return s
	}
	have := c.peers.others(l)
	if l.forget && c.inTheWay() != "" {
		s.need = max(s.need, have+1)
	}
	s.done, s.upTo = have >= s.need, math.MaxUint64
	if s.done && l.forget {
		return c.depart(o)
	}
	return s
}

// depart continues with being forgotten. If too few members would stay to agree to that, it
// continues with a plain leave instead: what this replica has acknowledged meanwhile must be handed
// over too.
func (c calls) depart(o *group) standing {
	if c.members.MayGo(c.cfg.Member) {
		o.Task = &removal{victim: c.cfg.Member, leaves: true}
	} else {
		c.stay(o)
	}
	o.AskSoon(c.now)
	c.waits.Stir()
	return o.Task.advance(c, o)
}

func (c calls) stay(o *group) {
	c.members.withdrawn, c.members.leaving = true, false
	o.Task = &leave{want: c.Seen()}
	o.AskSoon(c.now)
	c.waits.Stir()
	for _, p := range c.peers {
		c.sendBeat(p)
	}
}

// drain starts leaving. A replica that will not be forgotten no longer counts: anything that it
// acknowledged from now on would not be handed over. A replica that will be forgotten continues to
// count until it is marked as going [M4].
func (c calls) drain(ev Drain) {
	forget := ev.Leave && c.counts() && c.members.MayGo(c.cfg.Member)
	c.members.withdrawn, c.members.leaving = !forget, forget
	for _, p := range c.peers {
		c.sendBeat(p)
	}
	c.disk.hurry = true
	if forget {
		c.makeRoom()
	}
	c.askFor(ev.ID, &leave{want: c.Seen(), forget: forget}, ev.Deadline)
}

// askFor begins a call of its own that asks every member at once.
func (c calls) askFor(id uint64, t task, deadline time.Time) {
	o := c.waits.Open(c.now, Level{Kind: Majority}, t)
	c.waits.Ask(c.now, o)
	c.waits.Add(o, waiting.Call{ID: id, Deadline: deadline})
	c.askMembers(o)
	c.advance(o)
	c.waits.Begun(c.now, o)
	c.waits.Stir()
}
