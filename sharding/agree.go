package sharding

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/homes"
)

// ballot holds the settings that the members with the role have announced.
type ballot struct {
	missing  int      // members that have announced nothing yet
	settings []string // of the others, the oldest member first
}

// most returns the settings that most of the members have, or among equals those of the oldest. It
// returns an empty string if no member has announced any.
func (b *ballot) most() (most string) {
	votes := map[string]int{}
	for _, s := range b.settings {
		votes[s]++
	}
	for _, s := range b.settings {
		if most == "" || votes[s] > votes[most] {
			most = s
		}
	}
	return most
}

// vote counts the announced settings.
func (c *control) vote() {
	b := &ballot{}
	for _, m := range c.view.ByAge(c.binding.cfg.Role) {
		switch q := c.peers.of(m); {
		case m.ID == c.view.Self.ID:
			if c.binding.session != nil {
				b.settings = append(b.settings, c.binding.cfg.settings())
			}
		case q == nil:
			b.missing++
		default:
			b.settings = append(b.settings, q.settings)
		}
	}
	c.binding.ballot.Store(b)
}

// outvoted returns the settings of most members, if they differ from those of this one.
func (l *binding) outvoted() (theirs string) {
	if b := l.ballot.Load(); b != nil && b.most() != l.cfg.settings() {
		return b.most()
	}
	return ""
}

// agreement holds the settings of all members that have run this type.
func (l *binding) agreement() distributeddata.Key[crdt.GSet[string]] {
	return distributeddata.NewKey(homes.Settings(l.cfg.Type), crdt.GSet[string]{})
}

// lookEvery is how often a member that starts looks whether the settings are agreed.
const lookEvery = 20 * time.Millisecond

// agree waits until the members agree on the settings, and returns an error if they are not those
// of this member. Unless all members that have run the type had the same ones, those of most
// members count. After Settle it is enough that this member joins others.
func (l *binding) agree(ctx context.Context) error {
	ready := make(chan error, 1) // also when ctx ends, with what is missing
	waits, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { ready <- l.data.Ready(waits) }()
	for begun := time.Now(); time.Since(begun) < l.cfg.Settle || !l.joins(ctx); {
		select {
		case err := <-ready:
			if err != nil {
				return fmt.Errorf("sharding %q: replicator: %w", l.cfg.Type, err)
			}
			return l.compare(ctx)
		case <-time.After(lookEvery):
		case <-l.closed:
			return ErrClosed
		}
	}
	return nil
}

// joins reports whether this member sees another one, all that it sees have its settings, and those
// that have run the type had no others. That can be known where the replicator is not ready since
// too few of its members are there; entities need no majority of them.
func (l *binding) joins(ctx context.Context) bool {
	b, own := l.ballot.Load(), l.cfg.settings()
	if b == nil || b.missing > 0 || len(b.settings) < 2 || slices.ContainsFunc(b.settings,
		func(s string) bool { return s != own }) {
		return false
	}
	there, err := l.agreement().Get(ctx, l.data)
	return err == nil && there.Len() == 1 && there.Contains(own)
}

// compare waits until the settings can be compared with those of the others.
func (l *binding) compare(ctx context.Context) error {
	for begun := time.Now(); ; {
		done, err := l.agreed(ctx, time.Since(begun) > l.cfg.Settle)
		if done || err != nil {
			return err
		}
		select {
		case <-time.After(lookEvery):
		case <-l.closed:
			return ErrClosed
		case <-ctx.Done():
			return fmt.Errorf("sharding %q: settings of the cluster: %w", l.cfg.Type,
				context.Cause(ctx))
		}
	}
}

// agreed makes one attempt. late means that members that have announced nothing are not waited for.
func (l *binding) agreed(ctx context.Context, late bool) (done bool, err error) {
	own, key := l.cfg.settings(), l.agreement()
	there, err := key.Get(ctx, l.data)
	if err != nil && !isNotFound(err) {
		return false, fmt.Errorf("sharding %q: settings of the cluster: %w", l.cfg.Type, err)
	}
	theirs := l.outvoted()
	known := there.Len() == 1 && there.Contains(own)
	b := l.ballot.Load()
	switch {
	case known && theirs == "":
		return true, nil
	case b == nil, b.missing > 0 && !late:
		return false, nil
	case theirs != "":
		return false, fmt.Errorf("sharding %q: %w: the cluster has %s, this member has %s",
			l.cfg.Type, ErrInvalid, theirs, own)
	case l.session == nil: // a proxy has no say
		return true, nil
	}
	_, err = key.Update(ctx, l.data, func(w *crdt.Writer, v *crdt.GSet[string]) error {
		v.Add(w, own)
		return nil
	}, distributeddata.Local)
	if err != nil {
		err = fmt.Errorf("sharding %q: settings of the cluster: %w", l.cfg.Type, err)
	}
	return true, err
}
