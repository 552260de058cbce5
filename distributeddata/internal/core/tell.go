package core

import (
	"github.com/concord-go/concord/distributeddata/internal/quorum"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/wire"
	pb "github.com/concord-go/concord/proto"
)

// The methods in this file tell other members the memory of this replica, or a part of it.

// encoded returns members of the memory as they are sent.
func (r *members) encoded(of []quorum.Member) *pb.Members {
	return &pb.Members{Members: quorum.Encode(of), Name: r.Own().Name, Least: uint32(r.Least()),
		Epoch: r.Epoch, Cluster: r.Cluster}
}

// whole returns a message with the whole memory.
func (r *members) whole() []byte {
	if r.wire == nil || r.wireOf != r.Digest() {
		r.wire, r.wireOf = encode(r.encoded(r.Members())), r.Digest()
	}
	return r.wire
}

// part returns a message with a part of the memory, or nil if only the whole can be sent: the parts
// of a record are those of one epoch.
func (r *members) part(of []quorum.Member) []byte {
	if r.Recorded() {
		return nil
	}
	m := r.encoded(of)
	m.Digest = r.Digest()
	return encode(m)
}

// sendMembers sends the whole memory.
func (r *members) sendMembers(s *step, p *peer, to causal.Replica) {
	p.told, p.toldAt = r.Digest(), s.now
	s.emit(Send{Member: p.ID, To: to, Manifest: wire.ReplicatorMembers, Payload: r.whole()})
}

// answerPull sends p what it may lack of the memory: without the members that are gone if p, by the
// digest in its request, has the same. A replica that joins thus hears of them once.
func (r *members) answerPull(s *step, p *peer, same uint64) {
	if same == 0 || r.Recorded() || same != r.GoneDigest() {
		r.sendMembers(s, p, p.replica)
		return
	}
	m := r.encoded(r.Present())
	m.Digest, m.Gone = r.Digest(), same
	p.told, p.toldAt = r.Digest(), s.now
	s.send(p, wire.ReplicatorMembers, encode(m))
}

// tellChanges tells the other members what this replica has changed.
func (r *members) tellChanges(s *step, ps peers) {
	if len(r.changed) == 0 {
		return
	}
	part := r.part(latest(r.changed))
	for _, p := range ps {
		r.tell(s, p, part)
	}
	r.changed = nil
}

// tellNews tells the members with another memory what this replica has heard last.
func (r *members) tellNews(s *step, ps peers) {
	var part []byte
	for _, p := range ps {
		if p.spoke && p.memory != r.Digest() && p.told != r.Digest() {
			if part == nil {
				part = r.part(r.news)
			}
			r.tell(s, p, part)
		}
	}
}

func (r *members) tell(s *step, p *peer, part []byte) {
	switch {
	case p.replica == 0 || p.memory == r.Digest():
	case part == nil:
		r.sendMembers(s, p, p.replica)
	default:
		p.told, p.toldAt = r.Digest(), s.now
		s.send(p, wire.ReplicatorMembers, part)
	}
}

// spoken returns the digest of the memory under which this replica speaks. If it has counted, and
// its disk does not hold what it says, it speaks under none: its next process may know nothing of
// the new members that this one remembers, and be a cluster without them [M3].
func (r *members) spoken(d *disk) uint64 {
	if d.ailing() && (r.counted || d.keptAs[0].Number > 0) {
		return 0
	}
	return r.Digest()
}

// latest returns the last entry of each member, ascending by name.
func latest(changes []quorum.Member) []quorum.Member {
	var m quorum.Memory
	for _, r := range changes {
		m = m.With(r)
	}
	return m.Members()
}
