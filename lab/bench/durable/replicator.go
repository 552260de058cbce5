package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/badger"
	"github.com/concord-go/concord/distributeddata/bbolt"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/simnet"
)

// members are replicators in one process, on an in-memory network.
type members struct {
	dd    []*distributeddata.Replicator
	close func() error
}

// counting counts the bytes of the batches committed to a store.
type counting struct {
	store.Store
	bytes atomic.Int64
}

func (c *counting) Commit(ctx context.Context, b *store.Batch) error {
	c.bytes.Add(int64(b.Size()))
	return c.Store.Commit(ctx, b)
}

func openStore(engine, dir string) (store.Store, error) {
	if engine == "bbolt" {
		return bbolt.Open(dir, bbolt.Config{})
	}
	return badger.Open(dir, badger.Config{})
}

// startMembers starts n members, each with a store in its own directory, or without one. Keys that
// begin with d are durable.
func startMembers(dir, engine string, n int, wrap func(store.Store) store.Store) (m members,
	err error) {
	var stores []store.Store
	for i := range n {
		if engine == "" {
			break
		}
		s, err := openStore(engine, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return m, err
		}
		stores = append(stores, s)
	}
	sim := simnet.NewCluster(simnet.Config{
		Options: simnet.Options{Seed: 1, Latency: 100 * time.Microsecond}, Members: n,
		Setup: func(at *simnet.Member) {
			cfg := distributeddata.Config{Member: fmt.Sprint("member-", at.Index), MinMembers: n}
			if stores != nil {
				cfg.Durable, cfg.Store = []string{"d*"}, stores[at.Index]
				if wrap != nil {
					cfg.Store = wrap(cfg.Store)
				}
			}
			dd, bad := distributeddata.New(at.System, cfg)
			err = errors.Join(err, bad)
			m.dd = append(m.dd, dd)
		},
	})
	m.close = func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, dd := range m.dd {
			err = errors.Join(err, dd.Close(ctx))
		}
		sim.Close()
		for _, s := range stores {
			err = errors.Join(err, s.Close())
		}
		return err
	}
	return m, err
}

// openMembers starts members, and returns when they are ready.
func openMembers(dir, engine string, n int, wrap func(store.Store) store.Store) (members, error) {
	m, err := startMembers(dir, engine, n, wrap)
	if err != nil {
		return m, err
	}
	if err := m.ready(); err != nil {
		return m, errors.Join(err, m.close())
	}
	return m, nil
}

// ready waits until all members are ready.
func (m members) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, dd := range m.dd {
		if err := dd.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// register returns the n-th key, with a value of 1 kB. It is durable if its prefix begins with d.
func register(prefix string, n int) distributeddata.Key[crdt.LWWRegister[string]] {
	return distributeddata.NewKey(fmt.Sprintf("%s key of thirty bytes %04d", prefix, n%keys),
		crdt.LWWRegister[string]{})
}

// updates returns a case in which replicators write values of 1 kB to durable keys.
func updates(engine string, n, writers int, level distributeddata.Consistency, name string) bench {
	return bench{name, writers, func(dir string) (writer, error) {
		m, err := openMembers(dir, engine, n, nil)
		if err != nil {
			return writer{}, err
		}
		return writer{writing(m.dd[0], "d", level), m.close}, nil
	}}
}

func writing(dd *distributeddata.Replicator, prefix string,
	level distributeddata.Consistency) func(n int) error {
	v := string(value())
	return func(n int) error {
		_, err := register(prefix, n).Update(context.Background(), dd,
			func(w *crdt.Writer, r *crdt.LWWRegister[string]) error {
				r.Set(w, v)
				return nil
			}, level)
		return err
	}
}

func replicatorCases() (all []bench) {
	for _, engine := range []string{"badger", "bbolt"} {
		for _, writers := range []int{1, 64} {
			all = append(all, updates(engine, 1, writers, distributeddata.Local,
				fmt.Sprintf("Update on %s, %d writers", engine, writers)))
		}
		all = append(all, updates(engine, 3, 1, distributeddata.Majority, "majority of 3 on "+
			engine+", 1 writer"))
	}
	return all
}

// volatile prints the cost of updates of volatile keys, alternately with a store that holds other
// keys and without a store.
func volatile(dir string, rounds int, each time.Duration) error {
	fmt.Printf("\n%-34s %12s %12s %8s\n", "updates of volatile keys, 1/s", "no store",
		"with badger", "x")
	for _, writers := range []int{1, 64} {
		var results [2][]result
		for round := range rounds {
			for i, engine := range []string{"", "badger"} {
				c := bench{"", writers, func(dir string) (writer, error) {
					m, err := openMembers(dir, engine, 1, nil)
					if err != nil {
						return writer{}, err
					}
					return writer{writing(m.dd[0], "volatile", distributeddata.Local), m.close}, nil
				}}
				r, err := c.run(filepath.Join(dir, fmt.Sprint("volatile", writers, round, i)), each)
				if err != nil {
					return err
				}
				results[i] = append(results[i], r)
			}
		}
		without, with := median(results[0]).rate, median(results[1]).rate
		fmt.Printf("%-34s %12.0f %12.0f %8.2f\n", fmt.Sprint(writers, " writers"), without, with,
			without/with)
	}
	return nil
}

// amplification prints how many bytes of rows one add to a large set writes to the store.
func amplification(dir string) error {
	const elements, adds = 10_000, 100
	var c *counting
	m, err := openMembers(filepath.Join(dir, "adds"), "badger", 1, func(s store.Store) store.Store {
		c = &counting{Store: s}
		return c
	})
	if err != nil {
		return err
	}
	set := distributeddata.NewKey("d set", crdt.ORSet[string]{})
	add := func(from, to int) error {
		_, err := set.Update(context.Background(), m.dd[0],
			func(w *crdt.Writer, v *crdt.ORSet[string]) error {
				for n := from; n < to; n++ {
					v.Add(w, fmt.Sprintf("element %06d", n))
				}
				return nil
			}, distributeddata.Local)
		return err
	}
	// Add in steps: the rest of a large change is written with later batches
	for n := 0; n < elements; n += 100 {
		err = errors.Join(err, add(n, n+100))
	}
	before := c.bytes.Load()
	for n := range adds {
		err = errors.Join(err, add(elements+n, elements+n+1))
	}
	fmt.Printf("\none add to a set of %d: %d bytes of rows\n", elements,
		(c.bytes.Load()-before)/adds)
	return errors.Join(err, m.close())
}
