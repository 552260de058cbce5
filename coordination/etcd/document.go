package etcd

import (
	"context"
	"fmt"
	"net/url"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination/leasestore"
)

// documentKey returns the key of a document. Commas are escaped in names, so the key is neither
// that of a lease nor below one.
func (s *store) documentKey(name string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: etcd: name of %d bytes, at most %d", leasestore.ErrRefused,
			len(name), maxName)
	}
	return s.prefix + ",document/" + url.PathEscape(name), nil
}

// LoadDocument implements leasestore.Documents.
func (s *store) LoadDocument(ctx context.Context,
	name string) ([]byte, leasestore.Version, error) {
	key, err := s.documentKey(name)
	if err != nil {
		return nil, "", err
	}
	r, err := s.client.Get(ctx, key)
	if err != nil {
		return nil, "", fmt.Errorf("etcd: document %.80q: %w", name, err)
	}
	if len(r.Kvs) == 0 {
		return nil, "", nil
	}
	text := r.Kvs[0].Value
	if len(text) > leasestore.MaxDocument {
		return nil, "", fmt.Errorf("%w: etcd: document %.80q has %d bytes, over the limit of %d",
			leasestore.ErrDamaged, name, len(text), leasestore.MaxDocument)
	}
	return text, version{mod: r.Kvs[0].ModRevision}.mark(), nil
}

// SwapDocument implements leasestore.Documents. A version is the revision of the last change, so
// a key that was deleted and created again has another version.
func (s *store) SwapDocument(ctx context.Context, name string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	key, err := s.documentKey(name)
	if err != nil {
		return "", err
	}
	from, ok := parse(old)
	if !ok || from.token != 0 {
		return "", leasestore.ErrConflict
	}
	r, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.ModRevision(key), "=", from.mod)).
		Then(clientv3.OpPut(key, string(next))).
		Commit()
	switch {
	case err != nil:
		return "", outcome(err)
	case !r.Succeeded:
		return "", leasestore.ErrConflict
	}
	return version{mod: r.Header.Revision}.mark(), nil
}
