package sharding

import (
	"log/slog"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/sharding/internal/core"
)

// State is the state of a shard as seen by one member.
type State uint8

// States of a shard.
const (
	// Elsewhere means that this member does not host the shard, and no message waits for it here.
	Elsewhere State = iota
	// Stashing means that this member does not host the shard, and messages wait here until its
	// home is known.
	Stashing
	// AwaitingLease means that this member should host the shard, and waits for the previous home
	// or for the lease.
	AwaitingLease
	// Active means that this member holds the lease, and entities run here.
	Active
	// HandingOff means that this member gives up the shard: entities are stopping, or the lease is
	// being released.
	HandingOff
)

func (s State) String() string {
	return [...]string{"elsewhere", "stashing", "awaiting the lease", "active", "handing off"}[s]
}

// ShardStatus is what one member knows about a shard.
type ShardStatus struct {
	Shard    int
	State    State
	Home     string             // id of the member that should host it; empty: none yet
	Token    coordination.Token // of the tenure on this member; 0: none
	Entities int                // running on this member
	Waiting  int                // messages of this member that wait for the shard
	// Held is the number of messages, of all members, that wait here for entities that are not
	// remembered yet, are ending, or back off.
	Held int

	// Since is when this member learned of State, Home and Token, by its wall clock; zero: it has
	// not heard of the shard in this incarnation. A change between Elsewhere and Stashing does not
	// count.
	Since time.Time
	// TakeOver is how long this member waited for the previous home and for the lease before the
	// shard became active here; 0: it is not active here.
	TakeOver time.Duration
	// Requested is the member that Allocate has named, as far as this member's replica knows;
	// empty: none. The shard may not have moved there yet, and does not while that member cannot
	// host.
	Requested string
}

// Status is what one member knows about a type, for human readers and dashboards. It may be
// outdated when it is read.
type Status struct {
	Type        string
	Role        string        // of the members that host it; empty: all
	LeasePrefix string        // the lease of a shard has this name, followed by the shard's number
	Movable     bool          // Allocate can move shards: External is set, and MaxMoves is not -1
	StoreFails  bool          // of remembered entities, for calls of this member
	Shards      []ShardStatus // all of them
}

// Count returns how many shards are in a state.
func (s Status) Count(state State) (n int) {
	for _, sh := range s.Shards {
		if sh.State == state {
			n++
		}
	}
	return n
}

// Entities returns how many entities run at this member.
func (s Status) Entities() (n int) {
	for _, sh := range s.Shards {
		n += sh.Entities
	}
	return n
}

// Status returns what this member knows. While the member rejoins, and after Close, it has no
// shards.
func (r *region) Status() Status {
	if r.made() != nil {
		return Status{}
	}
	if l := r.present.Load(); l != nil {
		return l.status()
	}
	return Status{Type: r.typ}
}

func (l *binding) status() Status {
	out := Status{
		Type: l.cfg.Type, Role: l.cfg.Role, LeasePrefix: l.cfg.LeasePrefix,
		Movable: l.cfg.External && l.cfg.MaxMoves > 0, Shards: make([]ShardStatus, 0,
			len(l.shards)),
	}
	out.StoreFails, _ = l.breaker.tripped()
	for _, s := range l.shards {
		out.Shards = append(out.Shards, s.now())
	}
	if l.cfg.External {
		for n, name := range l.readExternal().Homes {
			out.Shards[n].Requested = name
		}
	}
	return out
}

// Homes returns how many shards each member should host, by member id, as far as this member knows.
// Shards without a home are counted under the empty id.
func (s Status) Homes() map[string]int {
	homes := map[string]int{}
	for _, sh := range s.Shards {
		homes[sh.Home]++
	}
	return homes
}

// Entities returns the ids of at most atMost entities that run on this member, ordered by shard.
func (r *region) Entities(atMost int) (ids []string) {
	l := r.present.Load()
	if l == nil {
		return nil
	}
	for _, s := range l.shards {
		if ids = s.ids(ids, atMost); len(ids) >= atMost {
			break
		}
	}
	return ids
}

// ids appends the ids of the entities on this member, up to atMost in total.
func (s *hostedShard) ids(to []string, atMost int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slot == nil {
		return to
	}
	for id := range s.slot.Live() {
		if len(to) >= atMost {
			break
		}
		to = append(to, id)
	}
	return to
}

func (s *hostedShard) now() ShardStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.status
	now.Shard, now.Entities, now.Waiting = s.n, s.len(), s.out.Len()
	if s.slot != nil {
		now.Held = s.slot.Held()
	}
	if now.State == Elsewhere && now.Waiting > 0 {
		now.State = Stashing
	}
	return now
}

// turn records the state of a shard at a time, and reports whether it is new.
func (s *ShardStatus) turn(state State, home string, token coordination.Token,
	now time.Time) (turned bool) {
	if s.State == state && s.Home == home && s.Token == token {
		return false
	}
	switch {
	case state != Active:
		s.TakeOver = 0
	case s.State == AwaitingLease:
		s.TakeOver = max(0, now.Sub(s.Since))
	}
	s.State, s.Home, s.Token, s.Since = state, home, token, now
	return true
}

// publish records the state of the shard according to the core.
func (s *hostedShard) publish(log *slog.Logger, home string, phase core.Phase, token uint64) {
	state := [...]State{Elsewhere, AwaitingLease, AwaitingLease, Active, HandingOff, HandingOff,
		HandingOff}[phase]
	s.mu.Lock()
	was := s.status.State
	turned := s.status.turn(state, home, coordination.Token(token), time.Now())
	s.mu.Unlock()
	if turned {
		s.binding.changes.note(s.n)
	}
	if was != state {
		log.Debug("shard changed state", slog.Int("shard", s.n), slog.String("from", was.String()),
			slog.String("to", state.String()), slog.Uint64("token", token))
	}
}
