package zookeeper

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper/internal/link"
)

// A queue is a container node, which ZooKeeper removes when it is empty, with an ephemeral
// sequential child for each place. The name of the child contains all data of the place, so that
// one request reads the whole queue. Writing a place again replaces the child by one with another
// name, which keeps the number of the first child.

// waiter is a child of the node of a queue, CAME.BEAT.TTL.NONCE-NUMBER; CAME is empty in the first
// child of a waiter.
type waiter struct {
	leasestore.Waiter
	name    string
	came    uint64 // arrival number; the queue is ordered by it
	written uint64 // number of this child
}

// maxNonce bounds the length of names; nonces of sessions have 26 bytes.
const maxNonce = 128

func waiterPrefix(came string, p leasestore.Waiter) string {
	return fmt.Sprintf("%s.%d.%d.%s-", came, p.Beat, int64(p.TTL),
		base64.RawURLEncoding.EncodeToString([]byte(p.Nonce)))
}

func waiterOf(name string) (w waiter, ok bool) {
	rest, number := name, ""
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		rest, number = name[:i], name[i+1:]
	}
	part := strings.Split(rest, ".")
	if len(part) != 4 {
		return waiter{}, false
	}
	if part[0] == "" {
		part[0] = number
	}
	written, err := strconv.ParseUint(number, 10, 31)
	came, err2 := strconv.ParseUint(part[0], 10, 31)
	beat, err3 := strconv.ParseUint(part[1], 10, 64)
	ttl, err4 := strconv.ParseInt(part[2], 10, 64)
	nonce, err5 := base64.RawURLEncoding.DecodeString(part[3])
	return waiter{leasestore.Waiter{Nonce: string(nonce), Beat: beat, TTL: time.Duration(ttl)},
			name, came, written},
		errors.Join(err, err2, err3, err4, err5) == nil
}

// waiters returns a queue in order, without nodes that this module has not made.
func (s *Store) waiters(at string) (line []waiter, err error) {
	names, _, err := s.link.ZK().Children(at)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if w, ok := waiterOf(name); ok {
			line = append(line, w)
		}
	}
	slices.SortFunc(line, func(a, b waiter) int {
		return cmp.Or(cmp.Compare(a.came, b.came), cmp.Compare(a.written, b.written))
	})
	return line, nil
}

// Enqueue implements leasestore.Queuer. It refuses a nonce of more than 128 bytes. Places
// disappear with the ZooKeeper session of the store that wrote them.
func (s *Store) Enqueue(ctx context.Context, name string,
	p leasestore.Waiter) (ahead []leasestore.Waiter, err error) {
	if len(p.Nonce) > maxNonce {
		return nil, fmt.Errorf("%w: zookeeper: nonce of %d bytes, at most %d",
			leasestore.ErrRefused, len(p.Nonce), maxNonce)
	}
	return s.atQueue(ctx, name, func(at string) ([]leasestore.Waiter, error) {
		return s.enqueue(at, p)
	})
}

// Leave implements leasestore.Queuer.
func (s *Store) Leave(ctx context.Context, name string, gone []leasestore.Waiter) error {
	_, err := s.atQueue(ctx, name, func(at string) ([]leasestore.Waiter, error) {
		return nil, s.leave(at, gone)
	})
	return err
}

// atQueue repeats a change that is not complete yet, or that conflicted with others.
func (s *Store) atQueue(ctx context.Context, name string,
	try func(at string) ([]leasestore.Waiter, error)) ([]leasestore.Waiter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := s.path(name); err != nil {
		return nil, err
	}
	at := s.cfg.Path + queuesNode + "/" + part(name)
	ahead, err := link.Call(ctx, s.link, func(ctx context.Context) ([]leasestore.Waiter, error) {
		for range 8 {
			ahead, err := try(at)
			if !errors.Is(err, errMoving) && !errors.Is(err, zk.ErrNoNode) &&
				!errors.Is(err, zk.ErrNodeExists) {
				return ahead, err
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		return nil, errMoving
	})
	if err != nil {
		return nil, fmt.Errorf("zookeeper: queue of lease %.80q: %w", name, err)
	}
	return ahead, nil
}

// enqueue returns errMoving as long as the waiter had no place before.
func (s *Store) enqueue(at string, p leasestore.Waiter) ([]leasestore.Waiter, error) {
	line, err := s.waiters(at)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, cmp.Or(s.makeQueue(at), errMoving)
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(line, func(w waiter) bool { return w.Nonce == p.Nonce })
	if i < 0 {
		return nil, cmp.Or(s.arrive(at, line, p), errMoving)
	}
	if line[i].Beat < p.Beat {
		_, err = s.link.ZK().Multi(remove(at+"/"+line[i].name),
			s.waiter(at, fmt.Sprint(line[i].came), p))
	}
	ahead := make([]leasestore.Waiter, i)
	for j, w := range line[:i] {
		ahead[j] = w.Waiter
	}
	return ahead, err
}

func (s *Store) leave(at string, gone []leasestore.Waiter) error {
	line, err := s.waiters(at)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	var ops []any
	for _, w := range line {
		if slices.ContainsFunc(gone, func(g leasestore.Waiter) bool {
			return g.Nonce == w.Nonce && g.Beat >= w.Beat
		}) {
			ops = append(ops, remove(at+"/"+w.name))
		}
	}
	if err == nil && len(ops) > 0 {
		_, err = s.link.ZK().Multi(ops...)
	}
	return err
}

func (s *Store) makeQueue(at string) error {
	if err := s.makeAbove(at); err != nil {
		return err
	}
	_, err := s.link.ZK().CreateContainer(at, nil, zk.FlagContainer, s.cfg.ACL)
	return err
}

// arrive takes a place at the end. In a full queue it replaces the place that was written least
// recently.
func (s *Store) arrive(at string, line []waiter, p leasestore.Waiter) error {
	var ops []any
	if len(line) >= queue.Most {
		oldest := slices.MinFunc(line, func(a, b waiter) int {
			return cmp.Compare(a.written, b.written)
		})
		ops = append(ops, remove(at+"/"+oldest.name))
	}
	_, err := s.link.ZK().Multi(append(ops, s.waiter(at, "", p))...)
	return err
}

func (s *Store) waiter(at, came string, p leasestore.Waiter) *zk.CreateRequest {
	return &zk.CreateRequest{Path: at + "/" + waiterPrefix(came, p), Acl: s.cfg.ACL,
		Flags: zk.FlagEphemeral | zk.FlagSequence}
}
