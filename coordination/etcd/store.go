package etcd

import (
	"fmt"
	"net/url"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Config is the configuration of a store.
type Config struct {
	// Prefix of all keys, at most 1024 bytes. Stores with different
	// prefixes are independent if neither prefix begins with the other. Default "concord/leases/".
	Prefix string `yaml:"prefix"`
}

// validate checks the configuration. The error is coordination.ErrInvalid.
func (c Config) validate() error {
	if len(c.Prefix) > maxPrefix {
		return fmt.Errorf("etcd: %w: Prefix of %d bytes, at most %d", coordination.ErrInvalid,
			len(c.Prefix), maxPrefix)
	}
	return nil
}

const (
	maxPrefix = 1024
	maxName   = 16 << 10
)

// Store keeps leases in etcd. It may be used by many goroutines and sessions. Use New.
type Store interface {
	leasestore.Store
	leasestore.Watcher
	leasestore.SessionKeeper
	leasestore.Remover
	leasestore.TokenGiver
	leasestore.Documents
	leasestore.Batcher

	// LockName returns the name to pass to concurrency.NewMutex, concurrency.NewElection or etcdctl
	// lock, so that such a lock and this lease exclude each other.
	LockName(name string) string
}

type store struct {
	client *clientv3.Client
	prefix string
	leases leases
}

// New returns a store on a client. The caller keeps the client, and closes it after the sessions.
func New(client *clientv3.Client, c Config) (Store, error) {
	s, err := newStore(client, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(client *clientv3.Client, c Config) (*store, error) {
	if client == nil {
		return nil, fmt.Errorf("etcd: %w: client is nil", coordination.ErrInvalid)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Prefix == "" {
		c.Prefix = "concord/leases/"
	}
	s := &store{client: client, prefix: c.Prefix}
	s.leases.mu.of = map[leaseKey]*lease{}
	return s, nil
}

// LockName returns the name to pass to concurrency.NewMutex, concurrency.NewElection or etcdctl
// lock, so that such a lock and this lease exclude each other.
func (s *store) LockName(name string) string { return s.prefix + url.PathEscape(name) }

// KeepsSessions implements leasestore.SessionKeeper.
func (s *store) KeepsSessions() bool { return true }

// keys are the keys of a lease. Escaped names contain no slash, so no key is below another lease's.
type keys struct {
	name   string // of the lease
	record string
	locks  string // prefix of the holder's key and of locks of other programs
	holder string
}

// ofSession reports whether the record is a session's own: no other session writes it.
func (k keys) ofSession() bool { return strings.HasPrefix(k.name, leasestore.SessionRecords) }

func (s *store) keys(name string) (keys, error) {
	if len(name) > maxName {
		return keys{}, fmt.Errorf("%w: etcd: name of %d bytes, at most %d", leasestore.ErrRefused,
			len(name), maxName)
	}
	base := s.LockName(name)
	return keys{name: name, record: base, locks: base + "/", holder: base + "/holder"}, nil
}
