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
	"github.com/concord-go/concord/coordination/leasestore"
)

// lockTTL is the TTL shown for a lock of another program: the longest session timeout that servers
// grant by default.
const lockTTL = 40 * time.Second

// view is the state of a node and its children at one moment.
type view struct {
	path   string
	stat   *zk.Stat // nil without a node
	floor  coordination.Token
	record leasestore.Record
	line   []place
}

// reader reads for a look, with or without watches. Two goroutines call it.
type reader interface {
	Get(path string) ([]byte, *zk.Stat, error)
	Children(path string) ([]string, *zk.Stat, error)
}

var errMoving = errors.New("changes too fast to be read")

// look reads until the node and its children are of the same moment.
func (s *store) look(ctx context.Context, name, at string, r reader) (view, error) {
	for range 8 {
		if ctx.Err() != nil {
			return view{}, ctx.Err()
		}
		v, err := s.readNode(name, at, r)
		if !errors.Is(err, errMoving) {
			return v, err
		}
	}
	return view{}, errMoving
}

// readNode reads the node and its children concurrently.
func (s *store) readNode(name, at string, r reader) (view, error) {
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

// floorAbove returns a token that is not below any that a missing node has had: the parent node
// keeps the transaction that deleted it.
func (s *store) floorAbove(at string) (coordination.Token, error) {
	for at != "/" {
		at = path.Dir(at)
		exists, stat, err := s.link.ZK().Exists(at)
		if err != nil {
			return 0, err
		}
		if exists {
			return coordination.Token(max(stat.Pzxid, 0)), nil
		}
	}
	return 0, nil
}

// holder returns the place of the holder that the record names.
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

// show returns the record and its version. A record whose holder's place is gone is blank: the
// ZooKeeper session has ended, and a place never comes back. A lock of another program counts as
// held even if a place that holds nothing is still ahead of it.
func (s *store) show(v view) (leasestore.Record, leasestore.Version, error) {
	if v.stat == nil {
		return leasestore.Record{Token: v.floor}, "", nil
	}
	if p, held := v.holder(); held {
		return v.record, heldBy(v.stat, v.record.Token, p.name), nil
	}
	for _, p := range v.line {
		if p.foreign() {
			return s.showLock(v, p)
		}
	}
	return leasestore.Record{Token: max(v.record.Token, v.floor)}, free(v.stat), nil
}

func (s *store) showLock(v view, p place) (leasestore.Record, leasestore.Version, error) {
	at := v.path + "/" + p.name
	exists, stat, err := s.link.ZK().Exists(at)
	if err != nil {
		return leasestore.Record{}, "", err
	}
	if !exists {
		return leasestore.Record{}, "", errMoving
	}
	return leasestore.Record{Owner: "ZooKeeper lock " + at, Nonce: at + "@" +
		fmt.Sprint(stat.Czxid),
		Token: coordination.Token(max(stat.Czxid, 0)), TTL: lockTTL}, locked(v.stat), nil
}
