package core

import (
	"slices"
	"sync"
	"time"
)

// peer is the flow of messages to the entities of one other member. Beyond Config.Credit bytes that
// it has not taken, messages wait in the buffers of their shards, which are bounded: a member that
// is slow or stopped holds up no other.
//
// Messages wait for a known host only while its credit is used up, so none is overtaken.
type peer struct {
	flow    flow
	blocked []int // shards with messages that wait for credit, in order
}

// flow counts bytes since a peer is in the view. Its methods may be called by any goroutine.
//
// Invariant: taken <= sent, and sent - taken < credit before each message that is sent.
type flow struct {
	credit uint64

	mu          sync.Mutex
	sent, taken uint64
	marked      uint64 // sent, when the peer was last asked to confirm it
}

// spend counts a message that is sent. After each eighth of the credit, ask is what the peer must
// be asked to confirm. If the credit is used up and the message need not be sent, it returns false.
func (f *flow) spend(size int, must bool) (ask uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !must && f.sent-f.taken >= f.credit {
		return 0, false
	}
	f.sent += uint64(size) + perMessage
	if f.sent-f.marked >= f.credit/8 {
		f.marked = f.sent
		ask = f.sent
	}
	return ask, true
}

// mark returns what the peer must be asked to confirm.
func (f *flow) mark() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marked = f.sent
	return f.sent
}

// open reports whether the peer has not confirmed everything.
func (f *flow) open() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken < f.sent
}

func (f *flow) full() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent-f.taken >= f.credit
}

// confirm records what the peer has taken, and reports whether that is new.
func (f *flow) confirm(taken uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if taken <= f.taken || taken > f.sent {
		return false
	}
	f.taken = taken
	return true
}

// perMessage is what a message counts for beyond its size.
const perMessage = 64

// peer returns the peer of a member of the view.
func (r *Region) peer(m Member) *peer {
	p := r.peers[m]
	if p == nil {
		p = &peer{flow: flow{credit: uint64(r.cfg.Credit)}}
		r.peers[m] = p
	}
	return p
}

// blocked reports whether messages of the shard must wait for credit of its host.
func (s *shard) blocked() bool {
	if s.to == 0 || s.host == s.r.self {
		return false
	}
	if !s.peer.flow.full() {
		return false
	}
	if s.r.askAt.IsZero() {
		s.r.askAt = s.r.now.Add(s.r.cfg.Repeat)
	}
	return true
}

// spend sends a message to the host, and asks it to confirm after each eighth of the credit.
func (s *shard) spend(d Data) {
	ask, _ := s.peer.flow.spend(d.Body.Size, true)
	s.r.tell(s.host, d)
	if ask != 0 {
		s.r.tell(s.host, Sent{ask})
	}
}

// onTaken sends messages that have waited for credit.
func (r *Region) onTaken(from Member, taken uint64) {
	p := r.peers[from]
	if p == nil || !p.flow.confirm(taken) {
		return
	}
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

// owes reports whether a member has used up its credit, messages wait for it, or this region ends
// and the member has not confirmed all messages. Such a member is asked repeatedly what it has
// taken, since questions and answers may be lost.
func (r *Region) owes(m Member) bool {
	p := r.peers[m]
	return p != nil && r.awaits(m) && (len(p.blocked) > 0 || p.flow.full() ||
		!r.finish.IsZero() && p.flow.open())
}

// Finished reports, after Finish, whether all members have confirmed the messages of this process.
// It does not wait for members that do not answer within FlushTimeout.
func (r *Region) Finished() bool {
	return r.removed || !r.now.Before(r.finish) || !slices.ContainsFunc(r.view, r.owes)
}

func (r *Region) askTaken() {
	r.askAt = time.Time{}
	for _, m := range r.view {
		if r.owes(m) {
			r.tell(m, Sent{r.peers[m].flow.mark()})
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
