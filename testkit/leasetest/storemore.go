package leasetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/history"
)

// names returns names that differ in ways that stores have confused.
func names() []string {
	long := strings.Repeat("x", 63)
	all := []string{"a", "A", "ä", "a/b", "a_b", "a-b", "a.b", "a b", "..", ".", "/",
		"a ", "a  ", " a", " ", "  ", "a\t", "a.", "a/", "a\u00a0",
		"a%2fb", "%61",
		"日本", "\x00", "a\n",
		long, long + "1", long + "2", strings.Repeat("L", 300), strings.Repeat("l", 300),
		strings.Repeat("l", leasestore.MaxName),
		strings.Repeat("ä", leasestore.MaxName/2), strings.Repeat("\x00", leasestore.MaxName)}
	for i := range 20 {
		all = append(all, fmt.Sprint("shard-", i))
	}
	return all
}

func checkNames(e *env) {
	kept := map[string]leasestore.Record{}
	for i, n := range names() {
		_, err := e.store.Swap(e.Context(), n, "", sample(i+1))
		e.that(err == nil, "%.80q: %v", n, err)
		kept[n] = sample(i + 1)
	}
	for n, want := range kept {
		rec, _, err := e.store.Load(e.Context(), n)
		e.that(e.kept(rec, want) && err == nil, "%.80q: got %v, want %v, %v", n, rec, want, err)
	}
}

// checkBadNames checks that the session rejects invalid names, and that the store rejects names it
// could not read back.
func checkBadNames(e *env) {
	cfg := config()
	cfg.Logger = quiet
	s, err := coordination.Open(e.store, cfg)
	e.must(err)
	defer s.Close(context.Background())
	for n, bound := range map[string]string{
		"": "1", "a\xffb": "byte 1", strings.Repeat("n",
			leasestore.MaxName+1): strconv.Itoa(leasestore.MaxName),
		leasestore.SessionRecords + "x": leasestore.SessionRecords,
	} {
		_, err := s.Lease(n).TryAcquire(e.Context())
		e.that(errors.Is(err, coordination.ErrInvalid) && strings.Contains(err.Error(), bound),
			"%.80q: %v", n, err)
		_, err = s.Lease(n).Holder(e.Context())
		e.that(errors.Is(err, coordination.ErrInvalid), "%.80q: holder: %v", n, err)
	}
	const bad = "a\xffb"
	if _, err := e.store.Swap(e.Context(), bad, "", sample(1)); err != nil {
		e.that(errors.Is(err, leasestore.ErrRefused), "%q: %v", bad, err)
		return
	}
	rec, _, err := e.store.Load(e.Context(), bad)
	e.that(e.kept(rec, sample(1)) && err == nil, "%q was granted and is read back as %v, %v",
		bad, rec, err)
}

// soon is the time a watcher may take to report a change. It leaves room for a busy machine, since
// with Options.Outside it is real time.
const soon = time.Minute

func checkWatch(e *env) {
	w, ok := e.store.(leasestore.Watcher)
	if !ok {
		e.Skip("not checked: the store is no Watcher")
	}
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	ver := e.write("", sample(1))
	told := make(chan leasestore.Record, 100)
	go func() {
		defer close(told)
		for rec, err := range w.Watch(ctx, name) {
			e.that(err == nil || ctx.Err() != nil, "watch: %v", err)
			told <- rec
		}
	}()
	next := func() (rec leasestore.Record) {
		select {
		case rec = <-told:
		case <-time.After(soon):
			e.Fatalf("nothing is told")
		}
		return rec
	}
	first := next()
	e.that(e.kept(first, sample(1)), "the present record comes first, not %v", first)
	for i := 2; i < 6; i++ {
		if ver = e.write(ver, sample(i)); i == 3 {
			continue // older records may be skipped, the newest must not
		}
		for last := first; !e.kept(last, sample(i)); {
			last = next()
		}
	}
	cancel()
	deadline := time.After(soon)
	for {
		select {
		case _, open := <-told:
			if !open {
				return
			}
		case <-deadline:
			e.Fatalf("watching goes on after its context has ended")
		}
	}
}

// checkFresh checks that readers see every write that ended before the read began.
func checkFresh(e *env) {
	var written atomic.Uint64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := written.Load()
				rec, _, err := e.store.Load(e.Context(), name)
				e.that(err == nil && uint64(rec.Token) >= least,
					"loaded token %d after %d was written, %v", rec.Token, least, err)
			}
		})
	}
	defer func() { close(stop); wg.Wait() }()
	ver := leasestore.Version("")
	for i := range 100 {
		ver = e.write(ver, sample(i+1))
		written.Store(uint64(i + 1))
		rec, got, err := e.store.Load(e.Context(), name)
		e.that(e.kept(rec, sample(i+1)) && got == ver && err == nil, "after writing %d: %v %q %v",
			i+1, rec, got, err)
		runtime.Gosched()
	}
}

// checkStoreHistory records concurrent loads and swaps on a few names, and checks that the history
// is linearizable.
func checkStoreHistory(e *env) {
	var rec history.Recorder[history.RegisterOp, history.RegisterResult]
	var wg sync.WaitGroup
	for client := range 5 {
		wg.Go(func() {
			for i := range 60 {
				swapOnce(e, &rec, client, fmt.Sprint("r", i%3), 1+client*1000+i)
			}
		})
	}
	wg.Wait()
	history.Check(e, history.Register(), rec.Operations())
}

// swapOnce loads a record and replaces it. The register holds the numbers of attempts; the version
// compared by a swap stands for the number that was loaded with it.
func swapOnce(e *env, rec *history.Recorder[history.RegisterOp, history.RegisterResult], client int,
	key string, attempt int) {
	load := rec.Begin(client, history.RegisterOp{Key: key})
	before, ver, err := e.store.Load(e.Context(), key)
	if err != nil {
		load.Discard()
		e.Errorf("load: %v", err)
		return
	}
	shown := ""
	if ver != "" {
		shown = fmt.Sprint(before.Attempt)
	}
	load.End(history.RegisterResult{Value: shown})
	runtime.Gosched() // a fast store would otherwise never be interrupted here
	swap := rec.Begin(client, history.RegisterOp{Key: key, Kind: history.Swap, Old: shown,
		Value: fmt.Sprint(attempt)})
	_, err = e.store.Swap(e.Context(), key, ver, sample(attempt))
	switch {
	case err == nil:
		swap.End(history.RegisterResult{Swapped: true})
	case errors.Is(err, leasestore.ErrConflict):
		swap.End(history.RegisterResult{})
	case errors.Is(err, leasestore.ErrRefused):
		swap.Discard()
	default:
		swap.Unknown()
	}
}
