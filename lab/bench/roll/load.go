package main

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

// kinds of requests. Of ten requests, six go to entities, two to the singleton, and one writes each
// kind of data.
var kinds = [...]string{"entity", "singleton", "majority", "durable"}

const (
	toEntity = iota
	toSingleton
	toVolatile
	toDurable
)

// patience of a client with one request.
const patience = 10 * time.Second

// tally counts the requests of one kind in one phase.
type tally struct {
	retried, failed int
	took            []time.Duration
}

func (t *tally) percentile(p int) time.Duration {
	if len(t.took) == 0 {
		return 0
	}
	slices.Sort(t.took)
	return t.took[min(len(t.took)*p/100, len(t.took)-1)]
}

// load is the clients. Requests begin at fixed times, whether or not earlier ones have ended, and
// the time of a request counts from there.
type load struct {
	m       *member
	name    string // before the ids of its requests
	rate    int
	stop    chan struct{}
	pending sync.WaitGroup
	rolling atomic.Bool

	mu       sync.Mutex
	phases   [2][len(kinds)]tally // undisturbed, rolling
	answered map[string]bool      // requests to actors: whether they were answered
	written  [len(kinds)]struct{ acknowledged, unknown int64 }
	errors   map[string]int
	failed   []failure
}

// failure is a request that was not answered.
type failure struct {
	id    string
	begun time.Time
	at    string // what it was sent to
}

func startLoad(m *member, name string, rate int) *load {
	l := &load{m: m, name: name, rate: rate, stop: make(chan struct{}),
		answered: map[string]bool{}, errors: map[string]int{}}
	l.pending.Go(l.run)
	return l
}

func (l *load) run() {
	begun := time.Now()
	for n := 0; ; n++ {
		at := begun.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
		select {
		case <-l.stop:
			return
		case <-time.After(time.Until(at)):
		}
		l.pending.Go(func() { l.request(n, at) })
	}
}

// end waits for all requests.
func (l *load) end() {
	close(l.stop)
	l.pending.Wait()
}

func kindOf(n int) int {
	switch n % 10 {
	case 6, 7:
		return toSingleton
	case 8:
		return toVolatile
	case 9:
		return toDurable
	}
	return toEntity
}

// request sends one request, and once more if it was certainly not delivered.
func (l *load) request(n int, at time.Time) {
	phase := bits.Len(uint(btoi(l.rolling.Load())))
	kind, id := kindOf(n), fmt.Sprintf("%s-%s-%d", kinds[kindOf(n)], l.name, n)
	err := l.once(kind, n, id)
	again := errors.Is(err, sharding.ErrUndelivered) || errors.Is(err, singleton.ErrUndelivered)
	if again {
		err = l.once(kind, n, id)
	}
	took := time.Since(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &l.phases[phase][kind]
	t.took = append(t.took, took)
	t.retried += btoi(again)
	t.failed += btoi(err != nil)
	if err != nil {
		l.errors[fmt.Sprintf("%s: %v", kinds[kind], err)]++
		f := failure{id, at, kinds[kind]}
		if kind == toEntity {
			f.at = fmt.Sprint("shard ", l.m.region.Ref(entity(n)).Shard())
		}
		l.failed = append(l.failed, f)
	}
	switch {
	case kind == toEntity, kind == toSingleton:
		l.answered[id] = err == nil
	case err == nil:
		l.written[kind].acknowledged++
	default:
		l.written[kind].unknown++
	}
}

func entity(n int) string { return fmt.Sprint("e", n%1000) }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// once sends a request, the first time or again.
func (l *load) once(kind, n int, id string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	add := func(w *crdt.Writer, v *crdt.PNCounter) error { v.Add(w, 1); return nil }
	switch kind {
	case toEntity:
		_, err = l.m.region.Ref(entity(n)).Ask(ctx, wrapperspb.String(id))
	case toSingleton:
		_, err = l.m.clerk.Ask(ctx, wrapperspb.String(id))
	case toVolatile:
		_, err = volatileKey.Update(ctx, l.m.dd, add, distributeddata.Majority)
	case toDurable:
		_, err = durableKey.Update(ctx, l.m.dd, add, distributeddata.Majority)
	}
	return err
}

// lost compares the requests with what the members have recorded, by kind: requests that were
// acknowledged and are not there, and those that were handled twice.
func (l *load) lost(ctx context.Context, records map[string]int) (lost, twice [len(kinds)]int64,
	err error) {
	for id, answered := range l.answered {
		kind := toEntity
		if id[0] == kinds[toSingleton][0] {
			kind = toSingleton
		}
		if answered && records[id] == 0 {
			lost[kind]++
		}
		if records[id] > 1 {
			twice[kind]++
		}
	}
	for kind, key := range map[int]distributeddata.Key[crdt.PNCounter]{toVolatile: volatileKey,
		toDurable: durableKey} {
		v, err := key.Get(ctx, l.m.dd, distributeddata.Majority)
		if err != nil {
			return lost, twice, err
		}
		w := l.written[kind]
		lost[kind] = max(0, w.acknowledged-v.Value())
		twice[kind] = max(0, v.Value()-w.acknowledged-w.unknown)
	}
	return lost, twice, nil
}
