package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/node/provider/internal/roster"
)

// directory consists of the children of a cluster's node.
type directory struct {
	cfg  Config
	path string
}

func open(c Config, self roster.Self) (roster.Directory, error) {
	if strings.Contains(self.Cluster, "/") {
		return nil, fmt.Errorf("%w: cluster name (%.80q) must have no \"/\"", errInvalid,
			self.Cluster)
	}
	return &directory{cfg: c, path: c.Base + "/" + self.Cluster}, nil
}

// Where implements roster.Directory.
func (d *directory) Where() string { return "ZooKeeper at " + strings.Join(d.cfg.Servers, ",") }

// Leave implements roster.Directory. It does nothing: this member's node was removed with the
// session that Serve closed.
func (d *directory) Leave(context.Context, roster.Self) error { return nil }

// Close implements roster.Directory.
func (d *directory) Close() error { return nil }

// Serve implements roster.Directory. Each session is a ZooKeeper session with its own connection.
func (d *directory) Serve(ctx context.Context, self roster.Self,
	report func([]roster.Member)) error {
	err := d.serve(ctx, self, report)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // every call fails then
	}
	return err
}

func (d *directory) serve(ctx context.Context, self roster.Self,
	report func([]roster.Member)) error {
	s, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.register(d, self); err != nil {
		return fmt.Errorf("listing this member: %w", err)
	}
	known := listing{log: self.Log, by: map[string]roster.Member{}, refused: map[string]bool{}}
	for {
		changed, err := s.load(d.path, &known)
		if s.passes(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("listing members: %w", err)
		}
		report(slices.Collect(maps.Values(known.by)))
		select {
		case <-changed: // or the watch has ended, and the next load returns the reason
		case <-s.over:
			return zk.ErrSessionExpired
		}
	}
}

// load reads all members, and returns a channel that reports the next change.
func (s *session) load(path string, known *listing) (<-chan zk.Event, error) {
	names, _, changed, err := s.conn.ChildrenW(path)
	if err != nil {
		return nil, err
	}
	return changed, known.load(names, func(name string) ([]byte, error) {
		data, _, err := s.conn.Get(path + "/" + name)
		return data, err
	})
}

// register creates the node of this member. A random part in its name ensures that a retry after a
// lost answer does not create a second node.
func (s *session) register(d *directory, self roster.Self) error {
	m := self.Member
	m.ID = self.Cluster + "@" + self.ID
	data, err := encode(m)
	if err != nil {
		return err
	}
	if err := s.makePath(d.path, d.cfg.ACL); err != nil {
		return err
	}
	_, err = s.conn.CreateProtectedEphemeralSequential(d.path+"/actor-", data, d.cfg.ACL)
	return err
}

func (s *session) makePath(path string, acl []zk.ACL) error {
	exists, _, err := s.conn.Exists(path)
	if err != nil || exists {
		return err
	}
	if parent := path[:strings.LastIndex(path, "/")]; parent != "" {
		if err := s.makePath(parent, acl); err != nil {
			return err
		}
	}
	_, err = s.conn.Create(path, nil, 0, acl)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// listing holds the members by the name of their node. The data of a node never changes.
type listing struct {
	log     *slog.Logger
	by      map[string]roster.Member
	refused map[string]bool // nodes that are not valid members
}

// load updates the listing to the nodes that exist now.
func (l *listing) load(names []string, get func(string) ([]byte, error)) error {
	gone := func(name string) bool { return !slices.Contains(names, name) }
	maps.DeleteFunc(l.by, func(name string, _ roster.Member) bool { return gone(name) })
	maps.DeleteFunc(l.refused, func(name string, _ bool) bool { return gone(name) })
	for _, name := range names {
		if _, known := l.by[name]; known || l.refused[name] {
			continue
		}
		data, err := get(name)
		if errors.Is(err, zk.ErrNoNode) {
			continue // removed in the meantime; the watch will report it
		}
		if err != nil {
			return err
		}
		m, err := decode(name, data)
		if err != nil {
			l.log.Warn("ZooKeeper node is not a member", slog.Any("error", err))
			l.refused[name] = true
			continue
		}
		l.by[name] = m
	}
	return nil
}
