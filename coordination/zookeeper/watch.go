package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper/internal/link"
)

// Watch implements leasestore.Watcher. It also reports renewals, and the end of a holder once
// ZooKeeper has noticed it. It survives lost connections.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		at, err := s.path(name)
		if err != nil {
			yield(leasestore.Record{}, err)
			return
		}
		again := time.NewTicker(askAfter)
		defer again.Stop()
		var last *leasestore.Record
		for {
			seen, err := link.Ask(ctx, s.link, func(ctx context.Context) (sight, error) {
				return s.sight(ctx, name, at)
			})
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				err = fmt.Errorf("zookeeper: watch: %w", err)
			}
			if (err != nil || last == nil || *last != seen.record) &&
				!yield(seen.record, err) || err != nil {
				return
			}
			last = &seen.record
			for changed := false; !changed; {
				select {
				case <-seen.alarm.data:
					changed = true
				case <-seen.alarm.children:
					changed = true
				case <-again.C:
					s.askAgain(ctx)
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// askAfter is how often a store asks the server for an answer while it watches: a server under load
// was seen to delay events until the next request, and a silent connection brings none.
const askAfter = 4 * time.Second

// askAgain asks for one, unless another watch has done so meanwhile.
func (s *store) askAgain(ctx context.Context) {
	s.alarms.mu.Lock()
	due := time.Since(s.alarms.mu.asked) >= askAfter*3/4
	if due {
		s.alarms.mu.asked = time.Now()
	}
	s.alarms.mu.Unlock()
	if !due {
		return
	}
	// After an error, the next answer or event shows the state.
	_, _ = link.Ask(ctx, s.link, func(context.Context) (any, error) {
		_, _, err := s.link.ZK().Exists("/")
		return nil, err
	})
}

// sight is a record, and the watches that fire when it is out of date.
type sight struct {
	record leasestore.Record
	alarm  alarm
}

func (s *store) sight(ctx context.Context, name, at string) (sight, error) {
	for range 8 {
		r := &alarmed{conn: s.link.ZK(), alarm: s.alarms.of(at)}
		v, err := s.look(ctx, name, at, r)
		s.alarms.set(at, r.alarm)
		if err != nil {
			return sight{}, err
		}
		rec, _, err := s.show(v)
		if !errors.Is(err, errMoving) {
			return sight{rec, r.alarm}, err
		}
	}
	return sight{}, errMoving
}

// alarm holds the watches of a node, each nil or not fired when last checked. ZooKeeper's watches
// cannot be removed, so all watchers of a name share them, also one after another. A channel that
// has fired is closed.
type alarm struct {
	data, children <-chan zk.Event
}

// alarms holds the watches by path.
type alarms struct {
	mu struct {
		sync.Mutex
		armed map[string]alarm
		asked time.Time // see askAgain
	}
}

// of returns the watches that have not fired.
func (a *alarms) of(at string) alarm {
	a.mu.Lock()
	defer a.mu.Unlock()
	had := a.mu.armed[at]
	return alarm{unfired(had.data), unfired(had.children)}
}

func (a *alarms) set(at string, now alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.armed[at] = now
}

func unfired(c <-chan zk.Event) <-chan zk.Event {
	select {
	case <-c:
		return nil
	default:
		return c
	}
}

// alarmed reads, and sets the missing watches. A watch that was set before the read reports every
// later change.
type alarmed struct {
	conn *zk.Conn
	alarm
}

// Get also watches a missing node.
func (a *alarmed) Get(at string) ([]byte, *zk.Stat, error) {
	if a.data = unfired(a.data); a.data != nil {
		return a.conn.Get(at)
	}
	data, stat, fires, err := a.conn.GetW(at)
	if !errors.Is(err, zk.ErrNoNode) {
		a.data = fires
		return data, stat, err
	}
	exists, _, fires, err := a.conn.ExistsW(at)
	switch {
	case err != nil:
		return nil, nil, err
	case exists: // meanwhile
		a.data = fires
		return a.conn.Get(at)
	}
	a.data = fires
	return nil, nil, zk.ErrNoNode
}

// Children does not watch a missing node, because Get does.
func (a *alarmed) Children(at string) ([]string, *zk.Stat, error) {
	if a.children = unfired(a.children); a.children != nil {
		return a.conn.Children(at)
	}
	names, stat, fires, err := a.conn.ChildrenW(at)
	a.children = fires
	return names, stat, err
}
