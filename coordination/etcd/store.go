package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/record"
)

// ErrDamaged is wrapped by the error of a record that cannot be read: damaged, of another name, or of
// a later format. Nothing can be concluded about the holder.
var ErrDamaged = record.ErrDamaged

// Config of a store.
type Config struct {
	// Prefix of all keys, at most 1024 bytes. Stores with different prefixes have nothing to do with
	// each other, if neither begins with the other. Default "concord/leases/".
	Prefix string `yaml:"prefix"`
}

const (
	maxPrefix = 1024
	maxName   = 16 << 10
)

// Store keeps leases in etcd. It may be used by many goroutines and sessions. Use New.
type Store struct {
	client *clientv3.Client
	prefix string
	leases leases
}

var (
	_ coordination.Store   = (*Store)(nil)
	_ coordination.Watcher = (*Store)(nil)
)

// New returns a store on a client, which stays the caller's: close it after the sessions.
func New(client *clientv3.Client, c Config) (*Store, error) {
	if client == nil {
		return nil, fmt.Errorf("etcd: %w: client is nil", coordination.ErrInvalid)
	}
	if c.Prefix == "" {
		c.Prefix = "concord/leases/"
	}
	if len(c.Prefix) > maxPrefix {
		return nil, fmt.Errorf("etcd: %w: Prefix of %d bytes, at most %d", coordination.ErrInvalid, len(c.Prefix), maxPrefix)
	}
	s := &Store{client: client, prefix: c.Prefix}
	s.leases.mu.of = map[leaseKey]*lease{}
	return s, nil
}

// LockName is what to give to concurrency.NewMutex, concurrency.NewElection or etcdctl lock, so that
// they and this lease exclude each other.
func (s *Store) LockName(name string) string { return s.prefix + url.PathEscape(name) }

// keys of a lease. Escaped names have no slash, so none is below another.
type keys struct {
	name   string // of the lease
	record string
	locks  string // prefix of the holder's key and of locks by others
	holder string
}

func (s *Store) keys(name string) (keys, error) {
	if len(name) > maxName {
		return keys{}, fmt.Errorf("%w: etcd: name of %d bytes, at most %d", coordination.ErrRefused, len(name), maxName)
	}
	base := s.LockName(name)
	return keys{name: name, record: base, locks: base + "/", holder: base + "/holder"}, nil
}

// A version is the revision of the record's last change. While a lock of others is held there is none
// to swap on: locked marks a version that no write may rest on, different at each look, since nothing
// in etcd shows whether that lock is alive but its being there.
const locked = "~"

func versionOf(mod int64) coordination.Version {
	if mod == 0 {
		return ""
	}
	return coordination.Version(strconv.FormatInt(mod, 10))
}

// revision is that of a version; false for one that cannot be the present one.
func revision(v coordination.Version) (int64, bool) {
	if v == "" {
		return 0, true
	}
	mod, err := strconv.ParseInt(string(v), 10, 64)
	return mod, err == nil && mod > 0 && versionOf(mod) == v && !strings.Contains(string(v), locked)
}

// Swap implements coordination.Store.
func (s *Store) Swap(ctx context.Context, name string, old coordination.Version, next coordination.Record) (coordination.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	k, err := s.keys(name)
	if err != nil {
		return "", err
	}
	mod, ok := revision(old)
	if !ok {
		return "", coordination.ErrConflict
	}
	value, err := record.Encode(name, next)
	if err != nil {
		return "", fmt.Errorf("%w: etcd: %w", coordination.ErrRefused, err)
	}
	if next.Nonce == "" {
		return s.blank(ctx, k, mod, string(value))
	}
	return s.hold(ctx, k, mod, next, string(value))
}

// blank frees the lease: the holder's key goes in the same step, which wakes locks of others.
func (s *Store) blank(ctx context.Context, k keys, mod int64, value string) (coordination.Version, error) {
	r, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(k.record), "=", mod)).
		Then(clientv3.OpPut(k.record, value), clientv3.OpDelete(k.holder)).
		Commit()
	switch {
	case err != nil:
		return "", outcome(err)
	case !r.Succeeded:
		return "", coordination.ErrConflict
	}
	return versionOf(r.Header.Revision), nil
}

// hold writes the record of a holder. The etcd lease of its session is prolonged first, if it has not the TTL left: a record
// that is found later, although the answer to its write was lost, must be one whose holder's key outlives what
// the holder believes. Doing both at once is faster by a round trip and was wrong.
func (s *Store) hold(ctx context.Context, k keys, mod int64, next coordination.Record, value string) (coordination.Version, error) {
	for range 2 {
		id, err := s.leases.alive(ctx, s.client, next)
		if err != nil {
			return "", fmt.Errorf("%w: etcd: %w", coordination.ErrRefused, err)
		}
		version, err := s.put(ctx, k, mod, next.Nonce, value, id)
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return version, err
		}
		s.leases.forget(next, id) // certainly not written
	}
	return "", fmt.Errorf("%w: etcd: %w", coordination.ErrRefused, rpctypes.ErrLeaseNotFound)
}

// put writes record and holder's key in one step. The holder itself may do so whoever waits; others
// only if no lock of others is there, and on an absent record only if no holder's key is there either:
// absence of a record is not freedom.
func (s *Store) put(ctx context.Context, k keys, mod int64, nonce, value string, id clientv3.LeaseID) (coordination.Version, error) {
	unchanged := clientv3.Compare(clientv3.ModRevision(k.record), "=", mod)
	write := []clientv3.Op{clientv3.OpPut(k.record, value), clientv3.OpPut(k.holder, nonce, clientv3.WithLease(id))}
	free := []clientv3.Cmp{unchanged, nothing(k.locks, k.holder), nothing(k.holder+"\x00", clientv3.GetPrefixRangeEnd(k.locks))}
	if mod == 0 {
		free = append(free, nothing(k.holder, k.holder+"\x00"))
	}
	r, err := s.client.Txn(ctx).
		If(unchanged, clientv3.Compare(clientv3.Value(k.holder), "=", nonce)).
		Then(write...).
		Else(clientv3.OpTxn(free, write, []clientv3.Op{
			clientv3.OpGet(k.record, clientv3.WithKeysOnly()),
			clientv3.OpGet(k.locks, clientv3.WithFirstCreate()...)})).
		Commit()
	if err != nil {
		return "", outcome(err)
	}
	if r.Succeeded {
		return versionOf(r.Header.Revision), nil
	}
	inner := r.Responses[0].GetResponseTxn()
	if inner.Succeeded {
		return versionOf(r.Header.Revision), nil
	}
	present, first := inner.Responses[0].GetResponseRange(), inner.Responses[1].GetResponseRange()
	if modOf(present.Kvs) == mod && len(first.Kvs) == 1 && string(first.Kvs[0].Key) == k.holder {
		// Load shows the same record again, so this is no conflict to be solved by looking.
		return "", fmt.Errorf("%w: etcd: %q waits for the holder's key to expire, or others do", coordination.ErrRefused, k.holder)
	}
	return "", coordination.ErrConflict
}

// nothing is true if there is no key from first up to end.
func nothing(first, end string) clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(first), "=", 0).WithRange(end)
}

// outcome tells errors that say that nothing was written from those that do not.
func outcome(err error) error {
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		return err
	}
	if e, ok := errors.AsType[rpctypes.EtcdError](rpctypes.Error(err)); ok {
		switch e.Code() {
		case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.ResourceExhausted:
			return fmt.Errorf("%w: etcd: %w", coordination.ErrRefused, err)
		}
	}
	return fmt.Errorf("etcd: %w", err)
}
