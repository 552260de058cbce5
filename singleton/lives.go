package singleton

import (
	"context"
	"fmt"

	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
)

// begin starts a life, of the Singleton that an earlier life of this process left or of a new one.
func begin(l *life) (*Singleton, error) {
	lives, key := lifecycle.LivesOf(l.system), "singleton "+l.cfg.Name
	s, kept, err := lifecycle.Handle(l.system, key, func() (*Singleton, error) {
		s := &Singleton{name: l.cfg.Name}
		s.mu.turn = make(chan struct{})
		return s, nil
	})
	if err != nil {
		return nil, fmt.Errorf("singleton %q: %w", l.cfg.Name, err)
	}
	if lives != nil && !kept {
		lives.OnEnd(func() { s.change(func() { s.mu.final = true }) })
	}
	if kept {
		l.cfg.MinMembers = 0 // it joins a cluster that has hosts
	}
	l.counts, l.place = &s.counts, &s.place
	l.members = membership.Attach(l.system)
	l.running, l.closed = make(chan struct{}), make(chan struct{})
	l.ended = func(err error) { s.drop(l, err) }
	if err := l.begin(key); err != nil {
		return nil, err
	}
	s.change(func() {
		s.present.Store(l)
		s.mu.final = lives == nil
	})
	l.members.WhenUp(func(self membership.Member) { l.started.Do(func() { l.up(self) }) })
	return s, nil
}

// change changes what those who wait for a life look at.
func (s *Singleton) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.mu.turn)
	s.mu.turn = make(chan struct{})
}

// drop forgets a life that has ended. An actor system is some megabytes: nothing may keep it.
func (s *Singleton) drop(l *life, err error) {
	s.change(func() {
		if s.present.CompareAndSwap(l, nil) {
			s.mu.err = err
		}
	})
}

// after returns the present life if it is another one than l, or waits for it.
func (s *Singleton) after(ctx context.Context, l *life) (*life, error) {
	for {
		s.mu.Lock()
		turn, final, present := s.mu.turn, s.mu.final, s.present.Load()
		s.mu.Unlock()
		switch {
		case present != nil && present != l:
			return present, nil
		case final:
			return nil, ErrClosed
		}
		select {
		case <-turn:
		case <-ctx.Done():
			return nil, fmt.Errorf("singleton %q: the message was not sent: %w: %w", s.name, ErrBetweenLives, context.Cause(ctx))
		}
	}
}
