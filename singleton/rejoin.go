package singleton

import (
	"errors"
	"fmt"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

// begin starts an incarnation: of the Singleton that an earlier incarnation of this process left,
// or of a new one.
func begin(l *binding) (*Singleton, error) {
	incarnations, key := lifecycle.IncarnationsOf(l.system), "singleton "+l.cfg.Name
	s, kept, err := lifecycle.Handle(l.system, key, func() (*Singleton, error) {
		present := lifecycle.NewPresent[binding](fmt.Sprintf("singleton %q", l.cfg.Name), ErrClosed)
		return &Singleton{name: l.cfg.Name, present: present}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("singleton %q: %w", l.cfg.Name, err)
	}
	if incarnations != nil && !kept {
		incarnations.OnEnd(s.present.Last)
	}
	if kept {
		l.cfg.MinMembers = 0 // it joins a cluster that has hosts
	}
	l.counts, l.place = &s.counts, &s.place
	l.members = membership.Attach(l.system)
	l.running, l.closed = make(chan struct{}), make(chan struct{})
	l.ended = func(err error) { s.present.Drop(l, err) }
	if l.unobserve, err = s.observe(l); err != nil {
		return nil, fmt.Errorf("singleton %q: metrics: %w", l.cfg.Name, err)
	}
	if err := l.begin(key); err != nil {
		return nil, errors.Join(err, l.unobserve())
	}
	s.present.Begin(l, incarnations == nil)
	l.members.WhenUp(func(self membership.Member) { l.started.Do(func() { l.up(self) }) })
	return s, nil
}
