package sharding

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/internal/timer"
)

// bind starts a life of the region that an earlier life of this process left, or of a new region.
func bind(l *life) (*region, error) {
	lives, key := lifecycle.LivesOf(l.system), "sharding "+l.cfg.Type
	r, kept, err := lifecycle.Handle(l.system, key, func() (*region, error) {
		present := lifecycle.NewPresent[life](fmt.Sprintf("sharding %q", l.cfg.Type), ErrClosed)
		return &region{typ: l.cfg.Type, shards: l.cfg.Shards, numbered: l.cfg.numbered, present: present, origin: rand.Uint64()}, nil //nolint:gosec // unique, not secret
	})
	if err != nil {
		return nil, fmt.Errorf("sharding %q: %w", l.cfg.Type, err)
	}
	if r.numbered != l.cfg.numbered {
		return nil, fmt.Errorf(
			"sharding %q: %w: one life of this process has workers of this type, another has entities", l.cfg.Type, ErrInvalid)
	}
	if r.shards != l.cfg.Shards {
		return nil, fmt.Errorf(
			"sharding %q: %w: %d shards, and %d in an earlier life of this process", l.cfg.Type,
			ErrInvalid, l.cfg.Shards, r.shards)
	}
	if lives != nil && !kept {
		lives.OnEnd(r.present.Last)
	}
	if kept {
		l.cfg.MinMembers = 0 // it joins a cluster that already has hosts
	}
	l.counts, l.clock = &r.counts, timer.ClockOf(l.system)
	l.log = l.system.Logger().With(slog.String("sharding", l.cfg.Type))
	l.members = membership.Attach(l.system)
	l.running, l.closed = make(chan struct{}), make(chan struct{})
	l.ended = func(err error) { r.present.Drop(l, err) }
	if l.unobserve, err = r.observe(l, l.cfg.Meters); err != nil {
		return nil, fmt.Errorf("sharding %q: metrics: %w", l.cfg.Type, err)
	}
	if err := l.begin(key); err != nil {
		return nil, errors.Join(err, l.unobserve())
	}
	r.extractor.Store(l.extractor)
	r.present.Begin(l, lives == nil)
	l.members.WhenUp(func(self membership.Member) { l.started.Do(func() { l.up(self) }) })
	return r, nil
}
