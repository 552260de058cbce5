package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
)

var storeChecks = []check{
	{"S1_EmptyStoreHasNoRecord", func(e *env) {
		rec, ver, err := e.store.Load(e.Context(), name)
		e.that(rec == coordination.Record{} && ver == "" && err == nil, "got %v %q %v", rec, ver, err)
	}},
	{"S2_SwapComparesVersions", func(e *env) {
		v1 := e.write("", sample(1))
		v2 := e.write(v1, sample(2))
		for _, old := range []coordination.Version{"", v1, "nonsense"} {
			_, err := e.store.Swap(e.Context(), name, old, sample(9))
			e.that(errors.Is(err, coordination.ErrConflict), "version %q: %v", old, err)
		}
		rec, ver, err := e.store.Load(e.Context(), name)
		e.that(rec == sample(2) && ver == v2 && err == nil, "got %v %q %v", rec, ver, err)
	}},
	{"S3_VersionsAreNeverReused", func(e *env) {
		seen := map[coordination.Version]bool{"": true}
		ver := coordination.Version("")
		for i := range 50 {
			ver = e.write(ver, sample(i%2))
			e.that(!seen[ver], "version %q twice", ver)
			seen[ver] = true
		}
	}},
	{"S4_ConcurrentSwapsHaveOneWinner", func(e *env) {
		for round := range 20 {
			_, old, err := e.store.Load(e.Context(), name)
			e.must(err)
			e.that(e.race(old, 10) == 1, "round %d", round)
		}
	}},
	{"S5_EndedContextIsRefused", func(e *env) {
		ctx, cancel := context.WithCancel(e.Context())
		cancel()
		_, err := e.store.Swap(ctx, name, "", sample(1))
		e.that(err != nil && !errors.Is(err, coordination.ErrConflict), "swap: %v", err)
		_, ver, err := e.store.Load(e.Context(), name)
		e.that(ver == "" && err == nil, "got %q %v", ver, err)
	}},
	{"S6_RecordsKeepEveryValue", func(e *env) {
		ver := coordination.Version("")
		for _, rec := range []coordination.Record{
			{Owner: "ü/\n\x00\"", Nonce: strings.Repeat("n", 100), Token: 1<<63 - 1, Attempt: 1<<64 - 1, TTL: 24 * time.Hour},
			{Token: 7},
		} {
			ver = e.write(ver, rec)
			got, _, err := e.store.Load(e.Context(), name)
			e.that(got == rec && err == nil, "got %#v, want %#v, %v", got, rec, err)
		}
	}},
	{"S7_WatchYieldsPresentAndNewest", checkWatch},
	{"A2_A10_A11_NamesNeverShareARecord", func(e *env) {
		for i, n := range names() {
			_, err := e.store.Swap(e.Context(), n, "", sample(i+1))
			e.that(err == nil, "%.80q: %v", n, err)
		}
		for i, n := range names() {
			rec, _, err := e.store.Load(e.Context(), n)
			e.that(rec == sample(i+1) && err == nil, "%.80q: %v %v", n, rec, err)
		}
	}},
}

func sample(i int) coordination.Record {
	return coordination.Record{Owner: "somebody", Nonce: "nonce", Token: coordination.Token(i), Attempt: 1, TTL: ttl}
}

func (e *env) write(old coordination.Version, rec coordination.Record) coordination.Version {
	e.Helper()
	ver, err := e.store.Swap(e.Context(), name, old, rec)
	e.must(err)
	return ver
}

// race counts the winners of n swaps on one version.
func (e *env) race(old coordination.Version, n int) (won int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		wg.Go(func() {
			_, err := e.store.Swap(e.Context(), name, old, sample(i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case !errors.Is(err, coordination.ErrConflict):
				e.Error(err)
			}
		})
	}
	wg.Wait()
	return won
}

// names differ in all the ways that stores have confused.
func names() []string {
	long := strings.Repeat("x", 63)
	all := []string{"a", "A", "ä", "a/b", "a_b", "a-b", "a.b", "a b", "..", ".", "/", "a%2fb", "%61", "日本", "\x00", "a\n",
		long, long + "1", long + "2", strings.Repeat("L", 300), strings.Repeat("l", 300), strings.Repeat("l", 5000)}
	for i := range 20 {
		all = append(all, fmt.Sprint("shard-", i))
	}
	return all
}

func checkWatch(e *env) {
	w, ok := e.store.(coordination.Watcher)
	if !ok {
		e.Skip("the store cannot watch")
	}
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	ver := e.write("", sample(1))
	told := make(chan coordination.Record, 100)
	go func() {
		defer close(told)
		for rec, err := range w.Watch(ctx, name) {
			e.that(err == nil, "watch: %v", err)
			told <- rec
		}
	}()
	e.that(<-told == sample(1), "the present record comes first")
	for i := 2; i < 5; i++ {
		ver = e.write(ver, sample(i))
		e.sleep(time.Second)
	}
	var last coordination.Record
	for len(told) > 0 {
		last = <-told
	}
	e.that(last == sample(4), "last told %v", last)
	cancel()
	for range told { // ends
	}
}
