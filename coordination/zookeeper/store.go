package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination/internal/record"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper/internal/link"
)

const maxName = 16 << 10

// Store keeps leases in ZooKeeper. It may be used by many goroutines and sessions. Use Open.
type Store interface {
	leasestore.Store
	leasestore.Watcher
	leasestore.SessionKeeper
	leasestore.Remover
	leasestore.Documents

	// Close ends the ZooKeeper session. Leases held through this store are free at once, so close
	// the coordination sessions first. If no server confirms the end, Close returns after a tenth
	// of the session timeout, at most 4 s, and the leases are free when the session has timed out.
	// Later calls of the store return ErrRefused.
	Close() error

	// LockPath returns the path to pass to zk.NewLock, so that the lock and this lease exclude each
	// other.
	LockPath(name string) string
}

type store struct {
	cfg      Config
	link     *link.Link
	instance string
	attempts atomic.Uint64
	alarms   alarms
	closing  sync.Once

	sessions sessions
}

// Open connects to ZooKeeper and waits until there is a session, or until ctx has ended. Errors of
// the configuration wrap coordination.ErrInvalid.
func Open(ctx context.Context, c Config) (Store, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	l, err := link.Connect(link.Config{Servers: c.Servers, SessionTimeout: c.SessionTimeout,
		Dial: c.Dial})
	if err != nil {
		return nil, fmt.Errorf("zookeeper: %w", err)
	}
	s := &store{cfg: c, link: l, instance: newInstance()}
	s.sessions.mu.known = map[string]backing{}
	s.alarms.mu.armed = map[string]alarm{}
	if _, err := link.Call(ctx, l, func(context.Context) (any, error) {
		if c.AuthScheme == "" {
			return nil, nil
		}
		return nil, l.ZK().AddAuth(c.AuthScheme, []byte(c.Auth))
	}); err != nil {
		l.Close()
		return nil, fmt.Errorf("zookeeper: connecting: %w", err)
	}
	return s, nil
}

// Close ends the ZooKeeper session. Leases held through this store are free at once, so close the
// coordination sessions first. If no server confirms the end, Close returns after a tenth of the
// session timeout, at most 4 s, and the leases are free when the session has timed out. Later calls
// of the store return ErrRefused.
func (s *store) Close() error {
	s.closing.Do(s.link.Close)
	return nil
}

// LockPath returns the path to pass to zk.NewLock, so that the lock and this lease exclude each
// other.
func (s *store) LockPath(name string) string {
	if nonce, of := strings.CutPrefix(name, leasestore.SessionRecords); of {
		return s.cfg.Path + sessionsNode + "/" + part(nonce)
	}
	return s.cfg.Path + "/" + part(name)
}

// Nodes beside those of leases. No escaped name equals these.
const (
	sessionsNode  = "/%sessions"
	documentsNode = "/%documents"
)

// part returns a name as the last part of a path.
func part(name string) string {
	switch name { // not allowed as names of nodes
	case "":
		return "%"
	case ".", "..":
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// newMaker returns an identifier that distinguishes a place from all others.
func (s *store) newMaker() string { return fmt.Sprintf("%s-%x", s.instance, s.attempts.Add(1)) }

func (s *store) path(name string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: zookeeper: name of %d bytes, at most %d", leasestore.ErrRefused,
			len(name), maxName)
	}
	return s.LockPath(name), nil
}

type shown struct {
	record  leasestore.Record
	version leasestore.Version
}

// Load implements leasestore.Store.
func (s *store) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	at, err := s.path(name)
	if err != nil {
		return leasestore.Record{}, "", err
	}
	got, err := link.Ask(ctx, s.link, func(ctx context.Context) (shown, error) {
		return link.Synced(s.link, s.cfg.Path, func() (shown, error) {
			return s.load(ctx, name, at)
		})
	})
	if err != nil {
		return leasestore.Record{}, "", fmt.Errorf("zookeeper: lease %.80q: %w", name, err)
	}
	return got.record, got.version, nil
}

func (s *store) load(ctx context.Context, name, at string) (got shown, err error) {
	for range 8 {
		v, err := s.look(ctx, name, at, s.link.ZK())
		if err != nil {
			return shown{}, err
		}
		s.sweep(v)
		got.record, got.version, err = s.show(v)
		if !errors.Is(err, errMoving) {
			return got, err
		}
	}
	return shown{}, errMoving
}

// sweep removes places that no record names, because locks of other programs would wait behind
// them. This module leaves none, but an operator may have written the record.
func (s *store) sweep(v view) {
	holder, _ := v.holder()
	for _, p := range v.line {
		if !p.foreign() && p.name != holder.name {
			// or next time
			_, _ = s.link.ZK().Multi(&zk.CheckVersionRequest{Path: v.path, Version: v.stat.Version},
				remove(v.path+"/"+p.name))
		}
	}
}

// Swap implements leasestore.Store.
func (s *store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	at, err := s.path(name)
	if err != nil {
		return "", err
	}
	was, ok := mark{}, true
	if old != "" {
		was, ok = parse(old)
	}
	if !ok {
		return "", leasestore.ErrConflict
	}
	value, err := record.Encode(name, next)
	if err != nil {
		return "", fmt.Errorf("%w: zookeeper: %w", leasestore.ErrRefused, err)
	}
	w := &write{s: s, conn: s.link.ZK(), name: name, path: at, was: was, next: next, value: value}
	version, err := link.Call(ctx, s.link, func(ctx context.Context) (leasestore.Version, error) {
		if next.Nonce != "" && !next.Forever {
			if err := s.fits(next.TTL); err != nil {
				return "", fmt.Errorf("%w: zookeeper: %w", leasestore.ErrRefused, err)
			}
		}
		bound, err := s.bind(ctx, next)
		if err != nil {
			return "", err
		}
		w.bound = bound
		if old == "" {
			return w.create()
		}
		return w.replace()
	})
	return version, outcome(err)
}

// fits returns an error if a TTL is too long for the session timeout.
func (s *store) fits(ttl time.Duration) error {
	granted := s.link.Granted()
	if most := granted * 3 / 4; granted > 0 && ttl > most {
		return fmt.Errorf("TTL (%v) must be at most %v, 3/4 of the granted session timeout "+
			"(%v, of %v requested)", ttl, most, granted, s.cfg.SessionTimeout)
	}
	return nil
}

// outcome classifies an error: ErrConflict or ErrRefused if certainly nothing was written.
func outcome(err error) error {
	switch {
	case err == nil, errors.Is(err, leasestore.ErrConflict), errors.Is(err, leasestore.ErrRefused):
		return err
	case errors.Is(err, zk.ErrBadVersion), errors.Is(err, zk.ErrNoNode),
		errors.Is(err, zk.ErrNodeExists), errors.Is(err, zk.ErrNotEmpty):
		return leasestore.ErrConflict
	case errors.Is(err, link.ErrNotSent), errors.Is(err, zk.ErrNoAuth),
		errors.Is(err, zk.ErrInvalidACL), errors.Is(err, zk.ErrNoServer):
		return fmt.Errorf("%w: zookeeper: %w", leasestore.ErrRefused, err)
	}
	return fmt.Errorf("zookeeper: %w", err)
}
