package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	rawbadger "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	rawbbolt "go.etcd.io/bbolt"

	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
)

const keys = 10_000 // number of keys, which are overwritten repeatedly

func cases() []bench {
	all := []bench{{"disk: append+fsync", 1, openDisk}}
	for _, writers := range []int{1, 64} {
		all = append(all,
			bench{fmt.Sprintf("raw Badger, %d writers", writers), writers, openRawBadger},
			bench{fmt.Sprintf("badger, %d writers", writers), writers, openBadger},
			bench{fmt.Sprintf("raw bbolt, %d writers", writers), writers, openRawBbolt},
			bench{fmt.Sprintf("bbolt, %d writers", writers), writers, openBbolt})
	}
	return all
}

// value returns 1 kB of incompressible data.
func value() []byte {
	b := make([]byte, 1000)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

func key(n int) string { return fmt.Sprintf("a key of some thirty bytes %04d", n%keys) }

func openDisk(dir string) (writer, error) {
	f, err := os.Create(filepath.Join(filepath.Clean(dir), "log"))
	if err != nil {
		return writer{}, err
	}
	v := value()
	return writer{func(int) error {
		if _, err := f.Write(v); err != nil {
			return err
		}
		return f.Sync()
	}, f.Close}, nil
}

// lean returns the options that package badger uses, for a fair comparison.
func lean(dir string) rawbadger.Options {
	return rawbadger.DefaultOptions(dir).WithSyncWrites(true).WithMemTableSize(
		32 << 20).WithNumMemtables(2).
		WithNumLevelZeroTables(1).WithNumLevelZeroTablesStall(4).WithCompactL0OnClose(
		true).WithNumCompactors(2).WithValueThreshold(1 << 20).
		WithValueLogFileSize(64 << 20).WithBlockCacheSize(0).WithCompression(
		options.None).WithDetectConflicts(false).
		WithMetricsEnabled(false).WithLogger(nil)
}

func openRawBadger(dir string) (writer, error) {
	db, err := rawbadger.Open(lean(dir))
	if err != nil {
		return writer{}, err
	}
	v := value()
	return writer{func(n int) error {
		return db.Update(func(txn *rawbadger.Txn) error { return txn.Set([]byte(key(n)), v) })
	}, db.Close}, nil
}

func openRawBbolt(dir string) (writer, error) {
	db, err := rawbbolt.Open(filepath.Join(dir, "rows.db"), 0o600, nil)
	if err != nil {
		return writer{}, err
	}
	name, v := []byte("rows"), value()
	err = db.Update(func(tx *rawbbolt.Tx) error { _, err := tx.CreateBucket(name); return err })
	return writer{func(n int) error {
		return db.Update(func(tx *rawbbolt.Tx) error {
			return tx.Bucket(name).Put([]byte(key(n)), v)
		})
	}, db.Close}, err
}

func openBadger(dir string) (writer, error) {
	s, err := badger.Open(dir, badger.Config{})
	return ours(s), err
}

func openBbolt(dir string) (writer, error) {
	s, err := bbolt.Open(dir, bbolt.Config{})
	return ours(s), err
}

func ours(s store.Store) writer {
	v := value()
	return writer{func(n int) error {
		b := &store.Batch{}
		b.Put(key(n), v)
		return s.Commit(context.Background(), b)
	}, s.Close}
}
