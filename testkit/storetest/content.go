package storetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/concord-go/concord/distributeddata/store"
)

func order(p *place) {
	p.holds("at the start")
	keys := []string{"b", "a", "\x00", "aa", "\xff\xff", "a\x00", "\xff", "é", "B", "10", "9"}
	for _, k := range keys {
		p.commit(k, "of "+k)
	}
	inOrder := func() {
		var got []string
		for r, err := range p.store().Load(p.ctx) {
			p.must(err, "Load")
			p.that(string(r.Value) == "of "+r.Key, "row %q has the value %q", r.Key, r.Value)
			got = append(got, r.Key)
		}
		want := slices.Sorted(slices.Values(keys))
		p.that(slices.Equal(got, want), "Load yields %q, want %q", got, want)
	}
	inOrder()
	p.close()
	inOrder()
}

func lastWriteWins(p *place) {
	for i := range 5 {
		p.commit("a", fmt.Sprint(i), "b", fmt.Sprint(-i))
	}
	p.holds("after five batches", "a", "4", "b", "-4")
	p.commit("a", "x", "b", "y", "a", "z")
	p.holds("after a batch with a key twice", "a", "z", "b", "y")
	p.close()
	p.holds("after opening again", "a", "z", "b", "y")
}

func deletes(p *place) {
	p.commit("a", "1", "b", "2", "c", "3")
	b := &store.Batch{}
	b.Delete("a")
	b.Delete("none")
	b.Put("b", []byte("new"))
	b.Delete("b")
	b.Delete("c")
	b.Put("c", []byte("back"))
	p.must(p.store().Commit(p.ctx, b), "Commit with deletes")
	p.holds("after deletes", "c", "back")
	p.close()
	p.holds("after opening again", "c", "back")
	p.commit("a", "again")
	p.holds("after a put of a deleted key", "a", "again", "c", "back")
}

// atomicToLoads writes batches of equal rows while concurrent loads check them.
func atomicToLoads(p *place) {
	keys := make([]string, 50)
	for i := range keys {
		keys[i] = fmt.Sprintf("row %02d", i)
	}
	write := func(n int) error {
		b := &store.Batch{}
		for _, k := range keys {
			b.Put(k, []byte(strconv.Itoa(n)))
		}
		return p.store().Commit(p.ctx, b)
	}
	p.must(write(0), "Commit")
	var wrote error
	var work sync.WaitGroup
	work.Go(func() {
		for n := 1; n <= 100 && wrote == nil; n++ {
			wrote = write(n)
		}
	})
	defer work.Wait()
	for range 100 {
		rows := p.rows()
		p.that(len(rows) == len(keys), "a Load sees %d of %d rows", len(rows), len(keys))
		for _, k := range keys {
			p.that(rows[k] == rows[keys[0]], "a Load sees %q of one batch and %q of another",
				rows[keys[0]], rows[k])
		}
	}
	work.Wait()
	p.must(wrote, "Commit during loads")
	p.that(p.rows()[keys[0]] == "100", "after all commits a Load sees number %s", p.rows()[keys[0]])
}

func bounds(p *place) {
	p.must(p.store().Commit(p.ctx, &store.Batch{}), "Commit of an empty batch")
	p.holds("after an empty batch")
	longest, largest := strings.Repeat("k", store.MaxKey), strings.Repeat("v", store.MaxValue)
	p.commit("empty", "", "\x00", "zero", longest, "of the longest key", "large", largest)
	sound := []string{"empty", "", "\x00", "zero", longest, "of the longest key", "large", largest}
	p.holds("with values at the bounds", sound...)

	for what, pairs := range map[string][]string{
		"an empty key":        {"fine", "1", "", "2"},
		"a key too long":      {"fine", "1", longest + "k", "2"},
		"a value too large":   {"fine", "1", "x", largest + "v"},
		"too many bytes":      {"1", largest, "2", largest, "3", largest, "4", largest, "5", "!"},
		"a large key, as one": {"fine", "1", strings.Repeat("k", 100_000), "2"},
	} {
		p.is(p.store().Commit(p.ctx, puts(pairs...)), store.ErrInvalid, "Commit of a batch with "+
			what)
	}
	many := &store.Batch{}
	for i := range store.MaxRows + 1 {
		many.Put(strconv.Itoa(i), nil)
	}
	p.is(p.store().Commit(p.ctx, many), store.ErrInvalid, "Commit of a batch with too many rows")
	p.holds("after batches that were refused", sound...)

	full := puts("1", largest, "2", largest, "3", largest)
	for i := 4; full.Len() < store.MaxRows; i++ {
		key := strconv.Itoa(i)
		full.Put(key, make([]byte, min(90, store.MaxBatch-full.Size()-len(key))))
	}
	p.must(p.store().Commit(p.ctx, full), "Commit of as many rows as are allowed")
	p.must(p.store().Commit(p.ctx,
		puts("1", largest, "2", largest, "3", largest, "4",
			largest[:store.MaxBatch-3*store.MaxValue-4])),
		"Commit of as many bytes as are allowed")
	want := len(sound)/2 + store.MaxRows
	p.that(len(p.rows()) == want, "%d rows, want %d", len(p.rows()), want)
	p.close()
	p.that(len(p.rows()) == want, "%d rows after opening again, want %d", len(p.rows()), want)
}
