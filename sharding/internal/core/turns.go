package core

import (
	"slices"
	"time"
)

// turns are the shards that a region is to give up because they are assigned elsewhere. It gives up
// a tenth of them at a time, so that messages do not wait for the lease store's calls about all
// others. A turn ends when another region has the shard, or after turnFor: entities that stop
// slowly, and a slow store, delay the rest by ten turns in all.
//
// A region that must not host any more gives up all its shards at once.
type turns struct {
	queue []int  // they still run here
	given []turn // oldest first
	most  int    // turns at a time
}

type turn struct {
	shard int
	token uint64
	until time.Time
}

const (
	turnFor    = 50 * time.Millisecond
	partOfTurn = 10
	leastTurns = 4
)

// yield gives up a shard that should not be here: at once, or when it is its turn.
func (s *shard) yield() {
	r := s.r
	switch {
	case r.orphan || r.removed || r.over || r.shut:
		s.flush()
	case !s.queued:
		s.queued = true
		r.turns.queue = append(r.turns.queue, s.n)
	}
}

// takeTurns gives up the next shards.
func (r *Region) takeTurns() {
	t := &r.turns
	if len(t.queue) == 0 {
		t.given, t.most = nil, 0
		return
	}
	t.given = slices.DeleteFunc(t.given, func(g turn) bool {
		return !r.now.Before(g.until) || r.shards[g.shard].to > g.token
	})
	t.most = max(t.most, leastTurns, (len(t.queue)+len(t.given))/partOfTurn)
	for len(t.queue) > 0 && len(t.given) < t.most {
		s := r.shards[t.queue[0]]
		t.queue, s.queued = t.queue[1:], false
		if s.phase == Running && !s.assigned() {
			t.given = append(t.given, turn{s.n, s.token, r.now.Add(turnFor)})
			s.flush()
			s.arm()
		}
	}
}

// due returns when a turn ends that others wait for; zero: never.
func (t *turns) due() time.Time {
	if len(t.queue) == 0 || len(t.given) == 0 {
		return time.Time{}
	}
	return t.given[0].until
}
