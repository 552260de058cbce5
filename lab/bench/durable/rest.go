package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
	rawbadger "github.com/dgraph-io/badger/v4"
)

// heap returns the bytes of heap in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// heaps prints the additional heap of an open empty store.
func heaps(dir string) error {
	fmt.Printf("%-34s %10s\n", "heap at rest, empty", "MB")
	for _, c := range []bench{
		{"raw Badger, default options", 0, func(dir string) (writer, error) {
			db, err := rawbadger.Open(rawbadger.DefaultOptions(dir).WithLogger(nil))
			return writer{close: db.Close}, err
		}},
		{"raw Badger, the options of badger", 0, func(dir string) (writer, error) {
			db, err := rawbadger.Open(lean(dir))
			return writer{close: db.Close}, err
		}},
		{"badger", 0, openBadger},
		{"bbolt", 0, openBbolt},
	} {
		before := heap()
		at := filepath.Join(dir, "heap")
		if err := os.Mkdir(at, 0o700); err != nil {
			return err
		}
		w, err := c.open(at)
		if err != nil {
			return err
		}
		fmt.Printf("%-34s %10.1f\n", c.name, float64(heap()-before)/1e6)
		if err := w.close(); err != nil {
			return err
		}
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	return nil
}

// loadsOf prints the time to open a store and to load the given number of rows of 1 kB, and the
// heap afterwards.
func loadsOf(dir string, rows int) error {
	fmt.Printf("\n%-34s %10s %9s %9s %9s %14s\n", fmt.Sprintf("%d rows of 1 kB", rows), "fill s",
		"open s", "load s", "heap MB", "disk MB")
	for _, c := range []struct {
		name string
		open func(dir string) (store.Store, error)
	}{
		{"badger", func(dir string) (store.Store, error) {
			return badger.Open(dir, badger.Config{})
		}},
		{"bbolt", func(dir string) (store.Store, error) { return bbolt.Open(dir, bbolt.Config{}) }},
	} {
		at := filepath.Join(dir, "load")
		begin := time.Now()
		s, err := c.open(at)
		if err != nil {
			return err
		}
		if err := fill(s, rows); err != nil {
			return err
		}
		filled := time.Since(begin)
		before := heap()
		begin = time.Now()
		if s, err = c.open(at); err != nil {
			return err
		}
		opened := time.Since(begin)
		n := 0
		for _, err := range s.Load(context.Background()) {
			if err != nil {
				return err
			}
			n++
		}
		loaded := time.Since(begin) - opened
		if n != rows {
			return fmt.Errorf("%s: %d rows of %d", c.name, n, rows)
		}
		taken, err := blocks(at)
		if err != nil {
			return err
		}
		fmt.Printf("%-34s %10.1f %9.2f %9.2f %9.1f %14.0f\n", c.name, filled.Seconds(),
			opened.Seconds(), loaded.Seconds(), float64(heap()-before)/1e6, float64(taken)/1e6)
		if err := s.Close(); err != nil {
			return err
		}
		if err := os.RemoveAll(at); err != nil {
			return err
		}
	}
	return nil
}

// fill commits rows in batches of 500, and closes the store.
func fill(s store.Store, rows int) error {
	v := value()
	for n := 0; n < rows; {
		b := &store.Batch{}
		for ; n < rows && b.Len() < 500; n++ {
			b.Put(fmt.Sprintf("a key of some thirty bytes %08d", n), v)
		}
		if err := s.Commit(context.Background(), b); err != nil {
			return err
		}
	}
	return s.Close()
}
