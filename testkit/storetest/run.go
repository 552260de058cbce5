package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
)

// Disk is the location at which the suite repeatedly opens the store under test. Each rule gets a
// new one.
type Disk struct {
	// Open opens the store, and creates it the first time. Required.
	Open func() (store.Store, error)
	// Crash stops the opened store abruptly, like a kill or a loss of power. The suite ignores
	// later calls of that store, and Open opens what is left. If it is nil, S7 and S8 are skipped.
	Crash func()
	// FailSync makes the next sync fail. If it is nil, S16 is skipped.
	FailSync func()
	// Flip changes the row of the key on the disk while the store is closed. If it is nil, S17 is
	// skipped.
	Flip func(key string)
}

// rule is one rule of the contract, with its check.
type rule struct {
	name  string
	needs func(Disk) bool // nil: no requirements
	check func(p *place)
}

func rules() []rule {
	crash := func(d Disk) bool { return d.Crash != nil }
	return []rule{
		{"S1_order", nil, order},
		{"S2_last_write_wins", nil, lastWriteWins},
		{"S3_deletes", nil, deletes},
		{"S4_atomic_to_loads", nil, atomicToLoads},
		{"S5_bounds", nil, bounds},
		{"S6_survives_close", nil, survivesClose},
		{"S7_survives_crash", crash, survivesCrash},
		{"S8_no_half_batch", crash, noHalfBatch},
		{"S9_close_twice", nil, closeTwice},
		{"S10_use_after_close", nil, useAfterClose},
		{"S11_concurrent_commits", nil, concurrentCommits},
		{"S12_context", nil, contextEnded},
		{"S13_nothing_shared", nil, nothingShared},
		{"S14_second_opener", nil, secondOpener},
		{"S15_loads_hold_nobody_up", nil, loadsHoldNobodyUp},
		{"S16_failed_sync", func(d Disk) bool { return d.FailSync != nil }, failedSync},
		{"S17_changed_row", func(d Disk) bool { return d.Flip != nil }, changedRow},
	}
}

// Run checks every rule of the contract in its own subtest, on the disks returned by disk.
func Run(t *testing.T, disk func(t *testing.T) Disk) {
	t.Helper()
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			d := disk(t)
			if r.needs != nil && !r.needs(d) {
				t.Skipf("%s is not checked: the Disk under test gives no way to", r.name)
			}
			if err := r.broken(d); err != nil {
				t.Error(err)
			}
		})
	}
}

// patience bounds the time of one rule, far above its usual duration, to catch checks that hang.
const patience = 2 * time.Minute

// violation is the panic value of a failed check.
type violation struct{ error }

// broken returns how the store breaks the rule, or nil.
func (r rule) broken(d Disk) error {
	ended := make(chan error, 1)
	go func() {
		p := &place{disk: d, ctx: context.Background()}
		defer func() {
			var err error
			switch v := recover().(type) {
			case nil:
			case violation:
				err = v.error
			default:
				err = fmt.Errorf("panic: %v", v)
			}
			ended <- errors.Join(err, p.leave())
		}()
		r.check(p)
	}()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case err := <-ended:
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		return nil
	case <-limit.C:
		return fmt.Errorf("%s: has not ended within %v", r.name, patience)
	}
}

// place is a disk with at most one open store.
type place struct {
	disk Disk
	ctx  context.Context
	open store.Store
}

// that panics with a violation unless ok is true.
func (p *place) that(ok bool, format string, args ...any) {
	if !ok {
		panic(violation{fmt.Errorf(format, args...)})
	}
}

func (p *place) must(err error, doing string) { p.that(err == nil, "%s: %v", doing, err) }

// is requires that err wraps want.
func (p *place) is(err, want error, doing string) {
	p.that(errors.Is(err, want), "%s returns %v, want an error that wraps %q", doing, err, want)
}

// store opens the store unless it is open.
func (p *place) store() store.Store {
	if p.open == nil {
		s, err := p.disk.Open()
		p.must(err, "Open")
		p.that(s != nil, "Open returns neither a store nor an error")
		p.open = s
	}
	return p.open
}

func (p *place) close() {
	p.must(p.store().Close(), "Close")
	p.open = nil
}

func (p *place) crash() {
	p.disk.Crash()
	p.open = nil
}

func (p *place) leave() error {
	if p.open == nil {
		return nil
	}
	return p.open.Close()
}

// commit writes pairs of keys and values.
func (p *place) commit(pairs ...string) {
	p.must(p.store().Commit(p.ctx, puts(pairs...)), "Commit")
}

func puts(pairs ...string) *store.Batch {
	b := &store.Batch{}
	for i := 0; i < len(pairs); i += 2 {
		b.Put(pairs[i], []byte(pairs[i+1]))
	}
	return b
}

// rows loads everything.
func (p *place) rows() map[string]string {
	rows, err := p.load()
	p.must(err, "Load")
	return rows
}

// load loads everything until the first error.
func (p *place) load() (map[string]string, error) {
	rows := map[string]string{}
	for r, err := range p.store().Load(p.ctx) {
		if err != nil {
			return rows, err
		}
		_, twice := rows[r.Key]
		p.that(!twice, "Load yields row %q twice", r.Key)
		rows[r.Key] = string(r.Value)
	}
	return rows, nil
}

// holds requires that the store contains exactly these pairs.
func (p *place) holds(when string, pairs ...string) {
	rows := p.rows()
	for i := 0; i < len(pairs); i += 2 {
		got, ok := rows[pairs[i]]
		p.that(ok, "%s row %q is missing", when, pairs[i])
		p.that(got == pairs[i+1], "%s row %q is %s, want %s", when, pairs[i], short(got),
			short(pairs[i+1]))
		delete(rows, pairs[i])
	}
	for key := range rows {
		p.that(false, "%s there is a row %q", when, key)
	}
}

func short(s string) string {
	if len(s) > 40 {
		return fmt.Sprintf("%q… (%d bytes)", s[:40], len(s))
	}
	return fmt.Sprintf("%q", s)
}
