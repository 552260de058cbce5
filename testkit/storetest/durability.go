package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/concord-go/concord/distributeddata/store"
)

func survivesClose(p *place) {
	var want []string
	for i := range 20 {
		key, value := fmt.Sprintf("%02d", i), fmt.Sprint("value ", i)
		p.commit(key, value)
		want = append(want, key, value)
		if i%5 == 0 {
			p.close()
		}
	}
	p.close()
	p.holds("after opening again", want...)
}

func survivesCrash(p *place) {
	var want []string
	for i := range 20 {
		key, value := fmt.Sprintf("%02d", i), fmt.Sprint("value ", i)
		p.commit(key, value)
		want = append(want, key, value)
		if i%4 == 0 {
			p.crash()
		}
	}
	b := &store.Batch{}
	b.Delete("00")
	p.must(p.store().Commit(p.ctx, b), "Commit of a delete")
	p.crash()
	p.holds("after a crash", want[2:]...)
	p.crash()
	p.holds("after a crash that follows only loads", want[2:]...)
}

// noHalfBatch crashes the store while batches of three rows are written.
func noHalfBatch(p *place) {
	const writers, rounds = 4, 8
	var acknowledged [writers]atomic.Int64
	for round := range rounds {
		s := p.store()
		ctx, cancel := context.WithCancel(p.ctx)
		var work sync.WaitGroup
		var under sync.WaitGroup // the first commit of each
		for w := range writers {
			under.Add(1)
			work.Go(func() {
				first := sync.OnceFunc(under.Done)
				defer first()
				for n := acknowledged[w].Load() + 1; ; n++ {
					v := fmt.Sprint(n)
					if s.Commit(ctx, puts(fmt.Sprint(w, "a"), v, fmt.Sprint(w, "b"), v,
						fmt.Sprint(w, "c"), v)) != nil {
						return
					}
					acknowledged[w].Store(n)
					first()
				}
			})
		}
		under.Wait()
		// Acknowledged before the crash; a copied disk may acknowledge more after it
		var safe [writers]int64
		for w := range writers {
			safe[w] = acknowledged[w].Load()
		}
		p.crash()
		cancel()
		work.Wait()
		rows := p.rows()
		for w := range writers {
			a, b, c := rows[fmt.Sprint(w, "a")], rows[fmt.Sprint(w, "b")], rows[fmt.Sprint(w, "c")]
			p.that(a == b && b == c, "after crash %d half a batch is there: %q, %q, %q", round,
				a, b, c)
			var n int64
			_, _ = fmt.Sscan(a, &n)
			p.that(n >= safe[w],
				"after crash %d number %d of writer %d is there, but %d was acknowledged", round, n,
				w, safe[w])
			acknowledged[w].Store(n)
		}
	}
}

func failedSync(p *place) {
	p.commit("before", "1")
	p.disk.FailSync()
	p.is(p.store().Commit(p.ctx, puts("a", "1", "b", "1")), store.ErrFailed,
		"Commit whose sync fails")
	for range 3 {
		p.is(p.store().Commit(p.ctx, puts("after", "1")), store.ErrFailed,
			"Commit after a failed sync")
	}
	_ = p.store().Close()
	p.open = nil
	rows := p.rows()
	p.that(rows["before"] == "1", "what was committed before a failed sync is missing")
	p.that(rows["a"] == rows["b"], "half of the batch whose sync failed is there: %v", rows)
	_, there := rows["after"]
	p.that(!there, "a batch is there that was refused after a failed sync")
	p.commit("after", "2")
	p.that(p.rows()["after"] == "2", "the store does not go on after opening again")
}

func changedRow(p *place) {
	p.commit("a", "first", "b", "second", "c", "third")
	p.close()
	p.disk.Flip("b")
	seen := map[string]string{}
	var bad []string
	for r, err := range p.store().Load(p.ctx) {
		switch {
		case errors.Is(err, store.ErrCorrupt):
			bad = append(bad, r.Key)
			p.that(len(bad) < 10, "Load yields errors without end")
		case err != nil:
			p.must(err, "Load")
		default:
			seen[r.Key] = string(r.Value)
		}
	}
	p.that(len(bad) == 1 && bad[0] == "b",
		"row b was changed on the disk, but ErrCorrupt is told of %q", bad)
	_, there := seen["b"]
	p.that(!there, "a row that was changed on the disk is yielded as %q", seen["b"])
	p.that(seen["a"] == "first" && seen["c"] == "third",
		"rows beside a changed one are missing: %v", seen)
	p.commit("b", "healed")
	p.holds("after the row was written again", "a", "first", "b", "healed", "c", "third")
}
