//go:build unix

package main

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/lab/bench/internal/measure"
	"github.com/concord-go/concord/sharding"
)

// counting is a store that counts its calls.
type counting struct {
	memory.Store
	loads, swaps atomic.Int64
}

// Load implements leasestore.Store.
func (c *counting) Load(ctx context.Context, name string) (leasestore.Record,
	leasestore.Version, error) {
	c.loads.Add(1)
	return c.Store.Load(ctx, name)
}

// Swap implements leasestore.Store.
func (c *counting) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	c.swaps.Add(1)
	return c.Store.Swap(ctx, name, old, next)
}

// Of the spread: members, shards, and the TTL of the leases.
const (
	spreadOver   = 3
	spreadShards = 1500
	spreadTTL    = 5 * time.Second
)

// spread measures the calls of the store at rest, and the memory of entities over three members.
func spread(ctx context.Context, entities int) error {
	if entities == 0 {
		return nil
	}
	store, count := &counting{Store: memory.New()}, &counter{}
	ports, err := measure.Ports(spreadOver)
	if err != nil {
		return err
	}
	var members []*member
	for i := range spreadOver {
		m, err := join("spread", ports, i, store, spreadTTL)
		if err != nil {
			return err
		}
		if m.many, err = m.region("many", spreadShards, spreadOver, count); err != nil {
			return err
		}
		members = append(members, m)
	}
	begun := time.Now()
	if err := start(ctx, members...); err != nil {
		return err
	}
	for active := 0; active < spreadShards; time.Sleep(20 * time.Millisecond) {
		active = 0
		for _, m := range members {
			active += m.many.Status().Count(sharding.Active)
		}
		if time.Since(begun) > time.Minute {
			return fmt.Errorf("%d shards of %d are active after a minute", active, spreadShards)
		}
	}
	time.Sleep(spreadTTL)
	loads, swaps := store.loads.Load(), store.swaps.Load()
	time.Sleep(3 * spreadTTL)
	loads, swaps = store.loads.Load()-loads, store.swaps.Load()-swaps
	fmt.Printf("%-38s %d reads and %d writes in three TTLs, of %d members and %d shards\n",
		"store calls at rest", loads, swaps, spreadOver, spreadShards)

	x := &bench{count: count}
	msg := wrapperspb.Int64(1)
	before, work := measure.Heap(), processor()
	rate := x.rate(func(i int) {
		if err := members[i%spreadOver].many.Ref(fmt.Sprint("entity-", i)).Tell(msg); err != nil {
			log.Fatal(err)
		}
	}, entities)
	work = processor() - work
	took := measure.Heap() - before
	alive := 0
	for _, m := range members {
		alive += m.many.Status().Entities()
	}
	fmt.Printf("%-38s %9d B each; started at %.0f/s, %.1f µs of processor time each, two of three from another member\n",
		fmt.Sprintf("%d entities over three members", alive), took/int64(max(1, alive)), rate,
		float64(work.Nanoseconds())/1000/float64(entities))
	stop(ctx, members...)
	return nil
}
