package core

import "time"

// peer is the flow of messages to the entities of one other member. Beyond Config.Credit bytes that
// it has not taken, messages wait in the buffers of their shards, which are bounded: a member that
// is slow or stopped holds up no other.
//
// Invariant: taken <= sent, and sent - taken < Config.Credit before each message that is sent.
// Messages wait for a known host only while its credit is used up, so none is overtaken.
type peer struct {
	sent, taken uint64 // bytes since this peer is in the view
	marked      uint64 // sent, when the peer was last asked to confirm it
	blocked     []int  // shards with messages that wait for credit, in order
}

// perMessage is what a message counts for beyond its size.
const perMessage = 64

// peer returns the peer of a member of the view.
func (r *Region) peer(m Member) *peer {
	p := r.peers[m]
	if p == nil {
		p = &peer{}
		r.peers[m] = p
	}
	return p
}

// blocked reports whether messages of the shard must wait for credit of its host.
func (s *shard) blocked() bool {
	if s.to == 0 || s.host == s.r.self {
		return false
	}
	if !s.peer.full(s.r.cfg) {
		return false
	}
	if s.r.askAt.IsZero() {
		s.r.askAt = s.r.now.Add(s.r.cfg.Repeat)
	}
	return true
}

// spend sends a message to the host, and asks it to confirm after each quarter of the credit.
func (s *shard) spend(d Data) {
	r, p := s.r, s.peer
	p.sent += uint64(d.Body.Size) + perMessage //nolint:gosec // positive
	r.tell(s.host, d)
	if p.sent-p.marked >= uint64(r.cfg.Credit/4) { //nolint:gosec // positive
		r.mark(s.host, p)
	}
}

func (r *Region) mark(m Member, p *peer) {
	p.marked = p.sent
	r.tell(m, Sent{p.sent})
}

// onTaken sends messages that have waited for credit.
func (r *Region) onTaken(from Member, taken uint64) {
	p := r.peers[from]
	if p == nil || taken <= p.taken || taken > p.sent {
		return
	}
	p.taken = taken
	waiting := p.blocked
	p.blocked = nil
	for _, n := range waiting {
		r.at(n, (*shard).unblock)
	}
}

// unblock sends waiting messages until the credit is used up.
func (s *shard) unblock() {
	if s.to != 0 {
		s.sendAll()
	}
}

// sendAll sends the waiting messages, or lets them wait again.
func (s *shard) sendAll() {
	n := 0
	for ; n < len(s.buffer) && !s.blocked(); n++ {
		b := s.buffer[n]
		s.buffer[n] = Body{}
		s.bytes -= b.Size
		s.r.bytes -= b.Size
		s.transmit(b)
	}
	s.r.waiting -= n
	if s.buffer = s.buffer[n:]; len(s.buffer) > 0 {
		s.peer.blocked = append(s.peer.blocked, s.n)
		return
	}
	s.buffer = nil
}

// owes reports whether a member has used up its credit, or messages wait for it. Such a member is
// asked repeatedly what it has taken, since questions and answers may be lost.
func (r *Region) owes(m Member) bool {
	p := r.peers[m]
	return p != nil && (len(p.blocked) > 0 || p.full(r.cfg))
}

func (p *peer) full(cfg Config) bool { return p.sent-p.taken >= uint64(cfg.Credit) } //nolint:gosec // positive

func (r *Region) askTaken() {
	r.askAt = time.Time{}
	for _, m := range r.view {
		if r.owes(m) {
			r.mark(m, r.peers[m])
			r.askAt = r.now.Add(r.cfg.Repeat)
		}
	}
}

// dropPeers forgets the members that are not in the view.
func (r *Region) dropPeers() {
	for m := range r.peers {
		if !r.sees(m) {
			delete(r.peers, m)
		}
	}
}
