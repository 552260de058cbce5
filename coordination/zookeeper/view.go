package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/record"
)

// lockTTL is shown as the TTL of a lock of others: what servers grant at most, unless told otherwise.
const lockTTL = 40 * time.Second

// view is what a node and its children were at one moment.
type view struct {
	path   string
	stat   *zk.Stat // nil without a node
	floor  coordination.Token
	record coordination.Record
	line   []place
}

// reader is how a look asks: with or without watches, in two goroutines.
type reader interface {
	Get(path string) ([]byte, *zk.Stat, error)
	Children(path string) ([]string, *zk.Stat, error)
}

var errMoving = errors.New("it changes too fast to be read")

// look reads until node and children belong together.
func (s *Store) look(ctx context.Context, name, at string, r reader) (view, error) {
	for range 8 {
		if ctx.Err() != nil {
			return view{}, ctx.Err()
		}
		v, err := s.glance(name, at, r)
		if !errors.Is(err, errMoving) {
			return v, err
		}
	}
	return view{}, errMoving
}

// glance asks for both at once.
func (s *Store) glance(name, at string, r reader) (view, error) {
	var names []string
	var stat *zk.Stat
	listed := make(chan error, 1)
	go func() {
		var err error
		names, stat, err = r.Children(at)
		listed <- err
	}()
	data, of, err := r.Get(at)
	err2 := <-listed
	switch {
	case errors.Is(err, zk.ErrNoNode):
		floor, err := s.floorAbove(at)
		return view{path: at, floor: floor}, err
	case err != nil:
		return view{}, err
	case errors.Is(err2, zk.ErrNoNode) || err2 == nil && stat.Mzxid != of.Mzxid:
		return view{}, errMoving
	case err2 != nil:
		return view{}, err2
	}
	v := view{path: at, stat: stat, floor: coordination.Token(max(stat.Mzxid, stat.Pzxid, 0))}
	if len(data) > 0 { // zk.Lock makes nodes without data
		if v.record, err = record.Decode(name, data); err != nil {
			return view{}, fmt.Errorf("node %.200q: %w", at, err)
		}
	}
	if v.line, err = lineOf(names); err != nil {
		return view{}, fmt.Errorf("node %.200q: %w", at, err)
	}
	return v, nil
}

// floorAbove is not below any token that a missing node has had: the node that it was deleted from keeps the
// transaction of that.
func (s *Store) floorAbove(at string) (coordination.Token, error) {
	for at != "/" {
		at = path.Dir(at)
		exists, stat, err := s.link.conn.Exists(at)
		if err != nil {
			return 0, err
		}
		if exists {
			return coordination.Token(max(stat.Pzxid, 0)), nil
		}
	}
	return 0, nil
}

// holder is the place of the one whom the record names.
func (v view) holder() (place, bool) {
	if v.record.Nonce == "" {
		return place{}, false
	}
	tag := tagOf(v.record.Nonce)
	for _, p := range v.line {
		if p.tag == tag {
			return p, true
		}
	}
	return place{}, false
}

// show is the record and its version. A record whose holder's place is gone is blank: ZooKeeper has said that
// its session ended, and a place never comes back. A lock of others counts as held although a place that
// nobody holds by is still before it.
func (s *Store) show(v view) (coordination.Record, coordination.Version, error) {
	if v.stat == nil {
		return coordination.Record{Token: v.floor}, "", nil
	}
	if p, held := v.holder(); held {
		return v.record, heldBy(v.stat, v.record.Token, p.name), nil
	}
	for _, p := range v.line {
		if p.foreign() {
			return s.showLock(v, p)
		}
	}
	return coordination.Record{Token: max(v.record.Token, v.floor)}, free(v.stat), nil
}

func (s *Store) showLock(v view, p place) (coordination.Record, coordination.Version, error) {
	at := v.path + "/" + p.name
	exists, stat, err := s.link.conn.Exists(at)
	if err != nil {
		return coordination.Record{}, "", err
	}
	if !exists {
		return coordination.Record{}, "", errMoving
	}
	return coordination.Record{Owner: "ZooKeeper lock " + at, Nonce: at + "@" + fmt.Sprint(stat.Czxid),
		Token: coordination.Token(max(stat.Czxid, 0)), TTL: lockTTL}, locked(v.stat), nil
}
