package sharding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/internal/contain"
	"github.com/concord-go/concord/internal/membership"
)

// MemberStats counts what one member runs of a type.
type MemberStats struct {
	Member     string // id of the member
	Shards     int    // active shards
	HandingOff int    // shards that it is handing off
	Entities   int    // running entities, including those of shards that it is handing off
	Waiting    int    // messages that wait for a shard
}

// ClusterStats counts what the members that host a type run of it.
type ClusterStats struct {
	Members []MemberStats // members that have answered, by id
	Missing []string      // ids of members that have not answered, in order
}

// surveyWithin bounds a survey.
const surveyWithin = 3 * time.Second

// ClusterStats queries every member that this one expects to host, including itself. It returns
// when all have answered, or after 3s or the end of ctx with the answers so far. Members that have
// not answered because they are cut off, paused or have other settings are listed in Missing,
// without an error. The counts of different members are from different instants: a shard that moves
// in the meantime may be counted twice or not at all.
//
// The error matches ErrClosed after Close and while the member rejoins, and ErrUnknown if this
// member is not up before ctx ends.
func (r *region) ClusterStats(ctx context.Context) (ClusterStats, error) {
	if err := r.made(); err != nil {
		return ClusterStats{}, err
	}
	l := r.present.Load()
	if l == nil {
		return ClusterStats{}, ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, surveyWithin)
	defer cancel()
	s := &survey{number: l.surveys.Add(1), answered: map[string]MemberStats{},
		done: make(chan struct{})}
	defer func() { contain.Send(l.system, l.control, &surveyed{s.number}) }()
	again := time.NewTicker(repeatEvery)
	defer again.Stop()
	for {
		contain.Send(l.system, l.control, s)
		select {
		case <-s.done:
			return s.result()
		case <-again.C:
		case <-l.closed:
			return ClusterStats{}, ErrClosed
		case <-ctx.Done():
			out, err := s.result()
			if err != nil {
				err = fmt.Errorf("%w: %w", err, context.Cause(ctx))
			}
			return out, err
		}
	}
}

// survey is one call of ClusterStats. It is sent repeatedly to the control actor, which sends the
// queries, until a surveyed message ends it.
type survey struct {
	number uint64
	done   chan struct{} // closed when all have answered

	mu       sync.Mutex
	expected map[string]uint64 // incarnations of members by id; nil: the view is not known yet
	answered map[string]MemberStats
}

// surveyed ends a survey.
type surveyed struct{ number uint64 }

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*survey) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging keeps messages to a stopped actor out of the log.
func (*surveyed) IgnoreDeadLetterLogging() {}

// expect sets, once, the members that should answer.
func (s *survey) expect(members []membership.Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected == nil {
		s.expected = map[string]uint64{}
		for _, m := range members {
			s.expected[m.ID] = m.Incarnation
		}
		if len(members) == 0 {
			close(s.done)
		}
	}
}

// misses reports whether a member is expected and has not answered.
func (s *survey) misses(m membership.Member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	incarnation, expected := s.expected[m.ID]
	_, has := s.answered[m.ID]
	return expected && incarnation == m.Incarnation && !has
}

// answer records the answer of a member that had not answered yet.
func (s *survey) answer(m MemberStats) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered[m.Member] = m
	if len(s.answered) == len(s.expected) {
		close(s.done)
	}
}

func (s *survey) result() (out ClusterStats, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expected == nil {
		return out, fmt.Errorf("%w: this member is not up", ErrUnknown)
	}
	for id := range s.expected {
		if _, has := s.answered[id]; !has {
			out.Missing = append(out.Missing, id)
		}
	}
	slices.Sort(out.Missing)
	out.Members = slices.SortedFunc(maps.Values(s.answered), func(a, b MemberStats) int {
		return strings.Compare(a.Member, b.Member)
	})
	return out, nil
}

// ask queries the members that have not answered a survey.
func (c *control) ask(s *survey) {
	if c.view == nil || c.view.Removed {
		return
	}
	if c.surveys == nil {
		c.surveys = map[uint64]*survey{}
	}
	c.surveys[s.number] = s
	var hosts []membership.Member
	for _, m := range c.view.Members {
		if m.Incarnation != 0 && m.HasRole(c.binding.cfg.Role) {
			hosts = append(hosts, m)
		}
	}
	s.expect(hosts)
	for _, m := range hosts {
		switch {
		case !s.misses(m):
		case m.ID == c.view.Self.ID:
			s.answer(c.binding.memberStats(m.ID))
		default:
			c.askStats(m, s.number)
		}
	}
}

// answered processes the answer of a member.
func (c *control) answered(from membership.Member, number uint64, m MemberStats) {
	if s := c.surveys[number]; s != nil && s.misses(from) {
		m.Member = from.ID
		s.answer(m)
	}
}

func (l *binding) memberStats(id string) MemberStats {
	s := l.status()
	out := MemberStats{Member: id, Shards: s.Count(Active), HandingOff: s.Count(HandingOff),
		Entities: s.Entities()}
	for _, sh := range s.Shards {
		out.Waiting += sh.Waiting
	}
	return out
}

// maxEntities bounds the counts that a member may report.
const maxEntities = math.MaxInt32 - 1

// fits rejects counts that no member can have.
func (m MemberStats) fits() error {
	if m.Shards+m.HandingOff > maxShards || m.Entities > maxEntities || m.Waiting > maxEntities {
		return errors.New("counts of shards, entities or messages out of bounds")
	}
	return nil
}
