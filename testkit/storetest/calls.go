package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/concord-go/concord/distributeddata/store"
)

func closeTwice(p *place) {
	s := p.store()
	p.commit("a", "1")
	first := s.Close()
	p.must(first, "Close")
	p.must(s.Close(), "a second Close")
	p.open = nil
	s = p.store()
	const each = 8
	errs := make([]error, 3*each)
	var work sync.WaitGroup
	for i := range each {
		work.Go(func() { errs[i] = s.Close() })
		work.Go(func() {
			err := s.Commit(p.ctx, puts("b", "2"))
			if err != nil && !errors.Is(err, store.ErrClosed) {
				errs[each+i] = fmt.Errorf("Commit concurrent with Close: %w", err)
			}
		})
		work.Go(func() {
			for _, err := range s.Load(p.ctx) {
				if err != nil && !errors.Is(err, store.ErrClosed) {
					errs[2*each+i] = fmt.Errorf("Load concurrent with Close: %w", err)
				}
			}
		})
	}
	work.Wait()
	p.must(errors.Join(errs...), "at once")
	p.open = nil
	p.that(p.rows()["a"] == "1", "row a is missing after Close")
}

func useAfterClose(p *place) {
	s := p.store()
	p.commit("a", "1")
	p.close()
	p.is(s.Commit(p.ctx, puts("b", "2")), store.ErrClosed, "Commit after Close")
	told := false
	for r, err := range s.Load(p.ctx) {
		p.that(err != nil, "Load after Close yields row %q", r.Key)
		p.that(!told, "Load after Close yields after an error")
		p.is(err, store.ErrClosed, "Load after Close")
		told = true
	}
	p.that(told, "Load after Close yields no error")
	p.holds("after opening again", "a", "1")
}

func concurrentCommits(p *place) {
	const writers, each = 16, 25
	s := p.store()
	errs := make([]error, writers)
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for n := range each {
				mine, v := fmt.Sprintf("writer %02d", w), fmt.Sprint(n)
				if err := s.Commit(p.ctx, puts(mine, v, "shared a", mine+v,
					fmt.Sprint(mine, " ", n), v, "shared b", mine+v)); err != nil {
					errs[w] = err
					return
				}
			}
		})
	}
	work.Wait()
	p.must(errors.Join(errs...), "concurrent Commit")
	complete := func(when string) {
		rows := p.rows()
		p.that(len(rows) == writers*(each+1)+2, "%s %d rows, want %d", when, len(rows),
			writers*(each+1)+2)
		for w := range writers {
			got := rows[fmt.Sprintf("writer %02d", w)]
			p.that(got == fmt.Sprint(each-1),
				"%s the last of the commits that writer %d made one after the other is not %d but %q", when, w, each-1, got)
		}
		p.that(rows["shared a"] == rows["shared b"], "%s two batches are mixed: %q and %q", when,
			rows["shared a"], rows["shared b"])
	}
	complete("after concurrent commits")
	p.close()
	complete("after opening again")
}

func contextEnded(p *place) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	p.commit("a", "1", "b", "2")
	loaded := 0
	for _, err := range p.store().Load(ctx) {
		if err != nil {
			p.is(err, cause, "Load whose context ends")
			break
		}
		loaded++
		cancel(cause)
	}
	p.is(p.store().Commit(ctx, puts("c", "3")), cause, "Commit with a context that has ended")
	for r, err := range p.store().Load(ctx) {
		p.that(err != nil, "Load with a context that has ended yields row %q", r.Key)
		p.is(err, cause, "Load with a context that has ended")
	}
	p.that(loaded >= 1, "Load yields nothing")
	p.holds("after that", "a", "1", "b", "2")
	p.commit("c", "3")
	p.close()
	p.holds("after opening again", "a", "1", "b", "2", "c", "3")
}

func nothingShared(p *place) {
	value := []byte("before")
	b := &store.Batch{}
	b.Put("a", value)
	p.must(p.store().Commit(p.ctx, b), "Commit")
	copy(value, "AFTER!")
	p.holds("after its slice was written to", "a", "before")
	for r, err := range p.store().Load(p.ctx) {
		p.must(err, "Load")
		copy(r.Value, bytes.Repeat([]byte("x"), len(r.Value)))
		_ = append(r.Value, "yyyy"...)
	}
	p.holds("after a loaded slice was written to", "a", "before")
	p.commit("b", "1", "c", "2")
	var kept []store.Row
	for r, err := range p.store().Load(p.ctx) {
		p.must(err, "Load")
		kept = append(kept, r)
	}
	p.commit("a", "later", "b", "later", "c", "later")
	for i, want := range []string{"before", "1", "2"} {
		p.that(string(kept[i].Value) == want,
			"a loaded value changes from %q to %q when the row is written", want, kept[i].Value)
	}
}

func secondOpener(p *place) {
	p.commit("a", "1")
	second, err := p.disk.Open()
	if err == nil {
		_ = second.Close()
	}
	p.is(err, store.ErrLocked, "Open while the store is open")
	p.commit("b", "2")
	p.close()
	p.holds("after Close and opening again", "a", "1", "b", "2")
	if p.disk.Crash != nil {
		p.crash()
		p.holds("after a crash and opening again", "a", "1", "b", "2")
	}
}

func loadsHoldNobodyUp(p *place) {
	p.commit("a", "1", "b", "2", "c", "3")
	for range 100 {
		for _, err := range p.store().Load(p.ctx) {
			p.must(err, "Load")
			break
		}
	}
	n := 0
	for r, err := range p.store().Load(p.ctx) {
		p.must(err, "Load")
		n++
		p.commit("during "+r.Key, "x", "c", "changed")
		p.that(n <= 3, "a Load sees rows that were committed after its start: %q", r.Key)
		p.that(r.Key != "c" || string(r.Value) == "3",
			"a Load sees a value that was committed after its start")
		for _, err := range p.store().Load(p.ctx) {
			p.must(err, "Load in a Load")
		}
	}
	for _, err := range p.store().Load(p.ctx) {
		p.must(err, "Load")
		break
	}
	p.close()
	p.that(len(p.rows()) == 6, "%d rows after opening again, want 6", len(p.rows()))
}
