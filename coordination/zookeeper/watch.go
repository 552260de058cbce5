package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
)

// Watch implements coordination.Watcher. It tells of renewals too, and of a holder's end when ZooKeeper has
// noticed it. It outlasts lost connections, and looks itself every 4 seconds.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[coordination.Record, error] {
	return func(yield func(coordination.Record, error) bool) {
		at, err := s.path(name)
		if err != nil {
			yield(coordination.Record{}, err)
			return
		}
		again := time.NewTicker(lookAgain)
		defer again.Stop()
		var last *coordination.Record
		for {
			seen, err := ask(ctx, s.link, func(ctx context.Context) (sight, error) { return s.sight(ctx, name, at) })
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				err = fmt.Errorf("zookeeper: watch: %w", err)
			}
			if (err != nil || last == nil || *last != seen.record) && !yield(seen.record, err) || err != nil {
				return
			}
			last = &seen.record
			select {
			case <-seen.alarm.data:
			case <-seen.alarm.children:
			case <-again.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// lookAgain is how long a watch trusts that it would be told. A server under load was seen to keep an event back until
// it was asked something.
const lookAgain = 4 * time.Second

// sight is a record, and what fires when it is out of date.
type sight struct {
	record coordination.Record
	alarm  alarm
}

func (s *Store) sight(ctx context.Context, name, at string) (sight, error) {
	for range 8 {
		r := &alarmed{conn: s.link.conn, alarm: s.alarms.of(at)}
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

// alarm is the watches of a node, each nil or not fired when last looked at. ZooKeeper's watches cannot be given back,
// so those who watch a name share them, also after each other. A channel that has fired is closed.
type alarm struct {
	data, children <-chan zk.Event
}

// alarms are the watches by path.
type alarms struct {
	mu struct {
		sync.Mutex
		armed map[string]alarm
	}
}

// of is without what has fired.
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

// alarmed reads with the watches that are missing. A watch from before the read tells of whatever comes after it.
type alarmed struct {
	conn *zk.Conn
	alarm
}

// Get watches a missing node too.
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

// Children does not watch a missing node: Get does.
func (a *alarmed) Children(at string) ([]string, *zk.Stat, error) {
	if a.children = unfired(a.children); a.children != nil {
		return a.conn.Children(at)
	}
	names, stat, fires, err := a.conn.ChildrenW(at)
	a.children = fires
	return names, stat, err
}
