package leasetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/leasetest"
)

// ownStore is the store of the exercise in docs/stores.md: it shows the code needed for any
// database with a compare-and-set.
type ownStore struct{ kv *kv }

func (s ownStore) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	data, version, err := s.kv.get(ctx, name)
	if errors.Is(err, errNoKey) {
		return leasestore.Record{}, "", nil
	}
	if err != nil {
		return leasestore.Record{}, "", err
	}
	var rec leasestore.Record
	if err := json.Unmarshal(data, &rec); err != nil {
		// never an empty record
		return leasestore.Record{}, "", fmt.Errorf("lease %q: %w", name, err)
	}
	return rec, leasestore.Version(version), nil
}

func (s ownStore) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	data, err := json.Marshal(next)
	if err != nil {
		return "", fmt.Errorf("%w: %w", leasestore.ErrRefused, err)
	}
	version, err := s.kv.compareAndSet(ctx, name, string(old), data)
	if errors.Is(err, errOtherVersion) {
		return "", leasestore.ErrConflict
	}
	return leasestore.Version(version), err
}

var (
	errNoKey        = errors.New("no such key")
	errOtherVersion = errors.New("another version")
)

// kv stands for a database. Its versions are never reused, not even those of a deleted key.
type kv struct {
	mu struct {
		sync.Mutex
		last    int
		entries map[string]entry
	}
}

type entry struct {
	data    []byte
	version string
}

func (k *kv) get(ctx context.Context, key string) ([]byte, string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.mu.entries[key]
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case !ok:
		return nil, "", errNoKey
	}
	return e.data, e.version, nil
}

func (k *kv) compareAndSet(ctx context.Context, key, old string, data []byte) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case k.mu.entries[key].version != old:
		return "", errOtherVersion
	}
	k.mu.last++
	version := strconv.Itoa(k.mu.last)
	k.mu.entries[key] = entry{data, version}
	return version, nil
}

func (k *kv) change(key string, to func(entry) entry) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.last++
	if e := to(k.mu.entries[key]); e.data == nil {
		delete(k.mu.entries, key)
	} else {
		k.mu.entries[key] = entry{e.data, strconv.Itoa(k.mu.last)}
	}
	return nil
}

func newKV() *kv {
	k := &kv{}
	k.mu.entries = map[string]entry{}
	return k
}

func TestOwnStore(t *testing.T) {
	leasetest.Run(t, func(*testing.T) leasestore.Store {
		return ownStore{newKV()}
	}, leasetest.Options{
		Reopen: func(_ *testing.T, s leasestore.Store) (leasestore.Store, error) { return s, nil },
		Delete: func(s leasestore.Store, name string) error {
			return s.(ownStore).kv.change(name, func(entry) entry { return entry{} })
		},
		Damage: func(s leasestore.Store, name string) error {
			return s.(ownStore).kv.change(name, func(entry) entry {
				return entry{data: []byte("hello")}
			})
		},
	})
}
