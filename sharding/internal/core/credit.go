package core

import (
	"slices"
	"time"
)

// peer is what the region knows of the messages to the entities of one other member: the shards
// whose messages wait until it has taken others, in order.
type peer struct{ blocked []int }

// peer returns the peer of a member of the view.
func (r *Region) peer(m Member) *peer {
	p := r.peers[m]
	if p == nil {
		p = &peer{}
		r.peers[m] = p
	}
	return p
}

// onBlocked records that messages wait for credit of their host.
func (s *shard) onBlocked(token uint64) {
	if token != s.to || s.peer == nil {
		return // it has changed: the shard was opened again, or will be
	}
	if !slices.Contains(s.peer.blocked, s.n) {
		s.peer.blocked = append(s.peer.blocked, s.n)
	}
	s.r.askSoon()
}

// onTaken sends messages that have waited for credit.
func (r *Region) onTaken(from Member) {
	p := r.peers[from]
	if p == nil {
		return
	}
	waiting := p.blocked
	p.blocked = nil
	for _, n := range waiting {
		if s := r.shards[n]; s.peer == p && s.to != 0 {
			s.open()
		}
	}
}

// owes reports whether messages wait for credit of a member, or this region ends and waits for the
// confirmation of all messages. Such a member is asked repeatedly what it has taken, since
// questions and answers may be lost.
func (r *Region) owes(m Member) bool {
	p := r.peers[m]
	return p != nil && r.awaits(m) && (len(p.blocked) > 0 || !r.finish.IsZero())
}

// Finished reports, after Finish, whether all members have confirmed the messages of this process,
// which owing reports for one. It does not wait for members that do not answer within FlushTimeout.
func (r *Region) Finished(owing func(Member) bool) bool {
	awaited := func(m Member) bool { return r.owes(m) && owing(m) }
	return r.removed || !r.now.Before(r.finish) || !slices.ContainsFunc(r.view, awaited)
}

func (r *Region) askSoon() {
	if r.askAt.IsZero() {
		r.askAt = r.now.Add(r.cfg.Repeat)
	}
}

func (r *Region) askTaken() {
	r.askAt = time.Time{}
	for _, m := range r.view {
		if r.owes(m) {
			r.tell(m, Sent{})
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
