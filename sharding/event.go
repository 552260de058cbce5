package sharding

import (
	"log/slog"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/internal/contain"
)

// ShardChanged is published on the event stream of the member's actor system when the state, the
// home or the token of a shard has changed on this member. Of changes that follow each other
// closely, only the last may be published, also if it restores what was published before. Handlers
// run in a goroutine of their own, one after the other: one that blocks delays the next event, and
// nothing else. If one panics, that is logged, and the later ones do not receive that event.
type ShardChanged struct {
	Type  string
	Shard int
	Was   State // as last published; at first Elsewhere
	State State // never Stashing, which is Elsewhere here
	Home  string
	Token coordination.Token // 0: none
	Since time.Time          // by the wall clock of this member
}

// changes collects the shards whose changes have not been published.
type changes struct {
	mu    sync.Mutex
	noted map[int]bool  // numbers of shards
	order []int         // the same, by their first change
	wake  chan struct{} // has room for one
}

// note records that a shard has changed.
func (c *changes) note(shard int) {
	c.mu.Lock()
	if !c.noted[shard] {
		if c.noted == nil {
			c.noted = map[int]bool{}
		}
		c.noted[shard] = true
		c.order = append(c.order, shard)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns the shards that have changed since the last call, in order.
func (c *changes) take() (order []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	order, c.order, c.noted = c.order, nil, nil
	return order
}

// announce publishes changes of shards until the incarnation has ended.
func (l *binding) announce() {
	states := map[int]State{} // as last published
	for ended := false; !ended; {
		select {
		case <-l.changes.wake:
		case <-l.closed:
			ended = true
		}
		for _, n := range l.changes.take() {
			e := l.shards[n].event(states[n])
			states[n] = e.State
			<-contain.Publish(l.system, "taking a ShardChanged", e,
				slog.String("sharding", l.cfg.Type))
		}
	}
}

func (s *hostedShard) event(was State) *ShardChanged {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &ShardChanged{Type: s.binding.cfg.Type, Shard: s.n, Was: was, State: s.status.State,
		Home: s.status.Home, Token: s.status.Token, Since: s.status.Since}
}
