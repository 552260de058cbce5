package core

import (
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// herald says to other members what a replica has: with heartbeats, acknowledgements, answers to
// probes, and requests for a memory. It notes what the peers have been told, and when a memory was
// requested, and changes nothing else.
type herald struct {
	*step
	cfg     *Config
	history *history.History
	members *members
	disk    *disk
	bases   *vectors
}

// The herald of a replica is made where it is needed: it consists of pointers.
func (c *Core) herald() herald {
	return herald{&c.step, &c.cfg, &c.history, &c.members, &c.disk, &c.bases}
}

// Seen returns the vector of all events that the replica has.
func (h herald) Seen() causal.Vector { return h.history.Seen() }

// Replica returns the id of the replica.
func (h herald) Replica() causal.Replica { return h.history.Replica() }

// counts reports whether the replica counts in quorums, and self how many it adds to them.
func (h herald) counts() bool { return h.members.counts(h.disk) }
func (h herald) self() int    { return h.members.self(h.disk) }

// sendBeat sends p this replica's vector and fingerprint. It is addressed to whichever replica runs
// at p. The vector is left out if the present replica knows it.
func (h herald) sendBeat(p *peer) {
	m := h.newBeat()
	if p.replica == 0 || p.toldOf != m.Digest {
		m.Seen = h.bases.out(h.Seen())
		p.toldOf = m.Digest
	}
	h.beat(p, m)
}

// askBeat sends a heartbeat with the whole vector that asks for one in return.
func (h herald) askBeat(p *peer) {
	m := h.newBeat()
	m.Seen, m.Want = h.bases.out(h.Seen()), true
	h.beat(p, m)
}

// glance sends p only the digest of this replica's vector, since p usually has the same one. If p
// has a different one, it asks, and for a while the following members are sent the whole vector.
func (h herald) glance(p *peer, unlike time.Time) {
	if p.replica == 0 || p.toldOf == 0 || h.now.Before(unlike) {
		h.sendBeat(p)
		return
	}
	h.beat(p, h.newBeat())
}

func (h herald) newBeat() *pb.Beat {
	sum := h.history.Sum()
	return &pb.Beat{
		Ready: h.counts(), Digest: digest(h.Seen()), SumA: sum[0], SumB: sum[1],
		Members: h.members.spoken(h.disk), Announced: h.members.announced(),
		Leaving: h.members.leaving, Parting: h.members.parting(), Entering: h.members.entering,
		Kept: h.disk.kept,
	}
}

func (h herald) beat(p *peer, m *pb.Beat) {
	if p.replica != 0 {
		m.Print = uint64(p.replica)<<32 | uint64(h.history.HashOf(p.replica))
	}
	if m.Seen != nil { // others take no such bytes
		m.Expiry, m.Least = h.cfg.Expiry, uint32(h.cfg.MinMembers)
	}
	p.told, p.toldAt = h.members.Digest(), h.now
	h.emit(Send{Member: p.ID, Manifest: wire.ReplicatorBeat, Payload: encode(m)})
}

// remind sends a heartbeat to p, which lacks events, unless it was sent one within the last
// heartbeat interval.
func (h herald) remind(p *peer, v causal.Vector) {
	if !h.Seen().Leq(v) && !h.now.Before(p.remindAt) {
		p.remindAt = h.now.Add(h.cfg.BeatInterval)
		h.sendBeat(p)
	}
}

// pull requests the memory of p, which differs from this replica's, unless all that it holds is
// here: then p lacks something, and requests it when it hears from this replica.
func (h herald) pull(p *peer) {
	if !p.differs(h.members.Digest()) || h.now.Before(p.pullAt) || h.now.Before(h.members.pullAt) {
		return
	}
	pause := min(h.cfg.Grace, pullPause)
	h.members.pullAt = h.now.Add(pause)
	p.pullAt = h.now.Add(min(pause<<min(p.pulls, 16), maxPullBeats*h.cfg.BeatInterval))
	p.pulls++
	m := h.newBeat()
	m.Pull, m.Gone = true, h.members.GoneDigest()
	h.beat(p, m)
}

// pullAny requests the memory of another member that still differs, of one that counts if possible.
func (h herald) pullAny(ps peers) {
	if h.now.Before(h.members.pullAt) {
		return
	}
	var from *peer
	for _, p := range ps {
		if p.differs(h.members.Digest()) && !h.now.Before(p.pullAt) &&
			(from == nil || p.ready && !from.ready ||
				p.ready == from.ready && p.heardAt.After(from.heardAt)) {
			from = p
		}
	}
	if from != nil {
		h.pull(from)
	}
}

// show sends the members a heartbeat from which it cannot tell that they have the same memory, once
// for each memory, and requests theirs if they do not answer.
func (h herald) show(ps peers) {
	digest := h.members.Digest()
	for _, p := range ps {
		if p.replica == 0 || !p.spoke || digest == 0 || p.said.under(digest) {
			continue
		}
		switch {
		case p.told != digest:
			h.sendBeat(p)
		case !h.now.Before(p.toldAt.Add(h.cfg.BeatInterval)):
			p.toldAt = h.now
			h.askBeat(p)
		}
	}
}

// acknowledge sends the acknowledgements that other members wait for, from applied state only, and
// only when ready [R24]. A replica that is not ready sends them later.
func (h herald) acknowledge(ps peers) {
	for _, p := range ps {
		if p.owed == 0 || p.replica == 0 || !h.counts() || h.Seen().Get(p.replica) < p.owed {
			continue
		}
		p.owed = 0
		h.sendAck(p)
	}
}

// sendAck acknowledges the events of p that this replica covers.
func (h herald) sendAck(p *peer) {
	h.send(p, wire.ReplicatorAck, encodeAck(h.Seen().Get(p.replica), h.counts(),
		h.members.Digest(), h.history.HashOf(p.replica)))
}

// replyProbe replies to a probe, which may propose a vector.
func (h herald) replyProbe(own *promise, p *peer, id uint64, want causal.Vector, proposes bool) {
	m := &pb.ProbeReply{Id: id, Ready: h.counts(), Seen: h.bases.out(h.Seen()),
		Members: h.members.spoken(h.disk), Resigned: h.members.resigned,
		Entering: h.members.entering, Parting: h.members.parting()}
	switch {
	case !proposes:
	case own.accept(want):
		m.Accepted = digest(want)
	default:
		m.Above = h.bases.out(own.accepted)
	}
	h.send(p, wire.ReplicatorProbeReply, encode(m))
}
