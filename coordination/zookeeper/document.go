package zookeeper

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/zookeeper/internal/link"
)

// A document is a node, whose data begin with a line that names the node's only child. ZooKeeper
// compares only the version of the data, which starts again when a node is deleted. The name of the
// child is random and does not come back, so that a swap that depends on both depends on one
// document.

// edition is a decoded version of a document.
type edition struct {
	child string
	data  int32 // version of the node's data
}

func (e edition) version() leasestore.Version {
	return leasestore.Version(e.child + "." + strconv.Itoa(int(e.data)))
}

// parseEdition returns false for a version that cannot be the present one.
func parseEdition(v leasestore.Version) (edition, bool) {
	child, number, _ := strings.Cut(string(v), ".")
	data, err := strconv.ParseInt(number, 10, 32)
	return edition{child, int32(data)}, err == nil && data >= 0 && isChild(child)
}

// isChild reports whether rand.Text can have made a name.
func isChild(name string) bool {
	return name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func (s *store) documentPath(name string) (string, error) {
	_, err := s.path(name)
	return s.cfg.Path + documentsNode + "/" + part(name), err
}

// LoadDocument implements leasestore.Documents.
func (s *store) LoadDocument(ctx context.Context,
	name string) ([]byte, leasestore.Version, error) {
	at, err := s.documentPath(name)
	if err != nil {
		return nil, "", err
	}
	type found struct {
		data []byte
		stat *zk.Stat // nil without a document
	}
	got, err := link.Ask(ctx, s.link, func(context.Context) (found, error) {
		if err := s.quorum(); err != nil {
			return found{}, err
		}
		data, stat, err := s.link.ZK().Get(at)
		if errors.Is(err, zk.ErrNoNode) {
			return found{}, nil
		}
		return found{data, stat}, err
	})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("zookeeper: document %.80q: %w", name, err)
	case got.stat == nil:
		return nil, "", nil
	}
	child, text, ok := bytes.Cut(got.data, []byte("\n"))
	if !ok || !isChild(string(child)) || len(text) > leasestore.MaxDocument {
		return nil, "", fmt.Errorf("%w: zookeeper: node %.200q is not a document of at most %d bytes",
			leasestore.ErrDamaged, at, leasestore.MaxDocument)
	}
	return text, edition{string(child), got.stat.Version}.version(), nil
}

// quorum makes a transaction that changes nothing. What this connection reads afterwards reflects
// all writes that were confirmed before. A sync is not enough: the server that was the leader until
// a moment ago answers it, and a leader may apply a write after other servers have confirmed it.
func (s *store) quorum() error {
	_, err := s.link.ZK().Multi(check(s.cfg.Path))
	if errors.Is(err, zk.ErrNoNode) {
		return nil // the answer of a transaction, too
	}
	return err
}

// SwapDocument implements leasestore.Documents.
func (s *store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	at, err := s.documentPath(name)
	if err != nil {
		return "", err
	}
	was, ok := edition{child: rand.Text()}, true
	if old != "" {
		was, ok = parseEdition(old)
	}
	if !ok {
		return "", leasestore.ErrConflict
	}
	data := append([]byte(was.child+"\n"), next...)
	version, err := link.Call(ctx, s.link, func(context.Context) (leasestore.Version, error) {
		if old == "" {
			return was.version(), s.createDocument(at, was.child, data)
		}
		answer, err := s.link.ZK().Multi(check(at+"/"+was.child),
			&zk.SetDataRequest{Path: at, Data: data, Version: was.data})
		if err != nil {
			return "", err
		}
		return edition{was.child, answer[1].Stat.Version}.version(), nil
	})
	if err != nil {
		return "", outcome(err)
	}
	return version, nil
}

func (s *store) createDocument(at, child string, data []byte) error {
	create := func() error {
		_, err := s.link.ZK().Multi(&zk.CreateRequest{Path: at, Data: data, Acl: s.cfg.ACL},
			&zk.CreateRequest{Path: at + "/" + child, Acl: s.cfg.ACL})
		return err
	}
	err := create()
	if errors.Is(err, zk.ErrNoNode) {
		if err := s.makeAbove(at); err != nil {
			return err
		}
		err = create()
	}
	return err
}
