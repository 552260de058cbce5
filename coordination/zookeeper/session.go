package zookeeper

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper/internal/link"
)

// A session record has a place of its own, an ephemeral node like those of its leases, and all of
// them belong to one ZooKeeper session: a lease's record is written only while the place of the
// session record exists. When the ZooKeeper session ends, all of them disappear together, and the
// renewal of the session record is a conflict.

// KeepsSessions implements leasestore.SessionKeeper.
func (s *store) KeepsSessions() bool { return true }

// backing is a tenure of a session record, and its place.
type backing struct {
	token coordination.Token
	path  string
}

// sessions caches the places of session records by nonce. A place that is not cached is read again.
type sessions struct {
	mu struct {
		sync.Mutex
		known map[string]backing
	}
}

// maxSessions bounds the cache.
const maxSessions = 1000

func (k *sessions) of(nonce string) backing {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.known[nonce]
}

// learn updates the cache after a write to a record, if that is a session record.
func (k *sessions) learn(name string, r leasestore.Record, path string) {
	nonce, of := strings.CutPrefix(name, leasestore.SessionRecords)
	if !of {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.Nonce != nonce {
		delete(k.mu.known, nonce)
		return
	}
	if _, known := k.mu.known[nonce]; !known && len(k.mu.known) >= maxSessions {
		for some := range k.mu.known {
			delete(k.mu.known, some)
			break
		}
	}
	k.mu.known[nonce] = backing{r.Token, path}
}

// errSessionOver is not a conflict: the version may be the present one, and an immediate retry
// would not help.
var errSessionOver = fmt.Errorf(
	"%w: zookeeper: the session record that holds the lease has lost its place",
	leasestore.ErrRefused)

// bind returns the place that must exist when next is written: that of the session record that next
// names. If there is no such record, it requires no place.
func (s *store) bind(ctx context.Context, next leasestore.Record) (string, error) {
	if next.Nonce == "" || next.Session == 0 {
		return "", nil
	}
	if b := s.sessions.of(next.Nonce); b.token == next.Session {
		return b.path, nil
	}
	name := leasestore.SessionRecords + next.Nonce
	v, err := s.look(ctx, name, s.LockPath(name), s.link.ZK())
	if err != nil {
		return "", fmt.Errorf("%w: zookeeper: session record: %w", leasestore.ErrRefused, err)
	}
	place, held := v.holder()
	switch {
	case v.stat == nil:
		return "", nil
	case !held, v.record.Token != next.Session, !strings.HasPrefix(place.maker, s.instance):
		return "", errSessionOver
	}
	return v.path + "/" + place.name, nil
}

// Remove implements leasestore.Remover.
func (s *store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, err := s.path(name)
	if err != nil {
		return err
	}
	was, ok := parse(old)
	if !ok {
		return leasestore.ErrConflict
	}
	_, err = link.Call(ctx, s.link, func(context.Context) (any, error) {
		return nil, s.remove(name, at, was)
	})
	return outcome(err)
}

func (s *store) remove(name, at string, was mark) error {
	exists, stat, err := s.link.ZK().Exists(at)
	switch {
	case err != nil:
		return err
	case !exists, stat.Czxid != was.created, was.holder == "" && places(stat) != was.had:
		return leasestore.ErrConflict
	}
	ops := []any{&zk.DeleteRequest{Path: at, Version: was.data}}
	if was.holder != "" {
		ops = []any{remove(at + "/" + was.holder), ops[0]}
	}
	if _, err = s.link.ZK().Multi(ops...); err != nil {
		return err
	}
	s.sessions.learn(name, leasestore.Record{}, "")
	if strings.HasPrefix(name, leasestore.SessionRecords) {
		s.tidy(time.UnixMilli(stat.Mtime))
	}
	return nil
}

const (
	tidied         = 8              // records examined each time that a session record is removed
	abandonedAfter = 48 * time.Hour // no TTL is that long
)

// tidy removes the records of sessions that crashed long ago while no contender wanted their
// leases, by the clock of the servers.
func (s *store) tidy(now time.Time) {
	parent := s.cfg.Path + sessionsNode
	names, _, err := s.link.ZK().Children(parent)
	if err != nil || len(names) == 0 {
		return // a later call tries again
	}
	first := rand.IntN(len(names))
	for i := range min(tidied, len(names)) {
		at := parent + "/" + names[(first+i)%len(names)]
		exists, stat, err := s.link.ZK().Exists(at)
		if err == nil && exists && stat.NumChildren == 0 &&
			now.Sub(time.UnixMilli(stat.Mtime)) > abandonedAfter {
			_ = s.link.ZK().Delete(at, stat.Version)
		}
	}
}
