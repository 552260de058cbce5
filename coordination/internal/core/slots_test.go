package core_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// The reads of many leases fail together, as while the first connections are made. The bound of
// calls in flight is halved once, not once for each of them, and not below what one call of the
// store swaps.
func TestSlots_FailuresThatAreTogetherHalveTheBoundOnce(t *testing.T) {
	for _, c := range []struct {
		batch int
		want  []int
	}{
		{0, []int{8, 4, 4}},
		{50, []int{100, 50, 50}},
	} {
		common := &core.Common{Batch: c.batch}
		machines := map[string]*core.Machine{}
		for i := range 300 {
			cfg := goldenConfig
			cfg.Name, cfg.Common = fmt.Sprint(i), common
			machines[cfg.Name] = core.New(cfg)
		}
		names := slices.Sorted(maps.Keys(machines))
		reading := map[string]uint64{} // the reads in flight
		at := time.Duration(0)
		step := func(name string, ev core.Event) {
			now := core.Reading{Mono: at, Boot: at, Wall: at}
			for _, e := range machines[name].Step(now, ev) {
				if l, is := e.(core.Load); is {
					reading[name] = l.Op
				}
			}
		}
		settle := func() {
			for ready := common.Ready(); len(ready) > 0; ready = common.Ready() {
				for _, name := range ready {
					step(name, core.Tick{})
				}
			}
		}
		for _, name := range names {
			step(name, core.Acquire{ID: 1, Wait: true})
		}
		settle()
		var got []int
		for range c.want {
			got = append(got, len(reading))
			at += time.Second
			failed := reading
			reading = map[string]uint64{}
			for name, op := range failed {
				step(name, core.Loaded{Op: op, Err: errors.New("no connection")})
			}
			settle()
			for _, name := range names {
				step(name, core.Tick{})
			}
			settle()
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("batches of %d: %v reads in flight as they fail together, want %v", c.batch,
				got, c.want)
		}
	}
}

// The audits of many tenures on a slow store take all slots, and more are due when they are done.
// Acquisitions get a third of the slots all the same.
func TestSlots_AuditsLeaveAThirdToAcquisitions(t *testing.T) {
	cfg := goldenConfig
	cfg.Forever, cfg.Common = true, &core.Common{Batch: 32} // which starts with 64 slots
	var started []string                                    // since they were looked at
	ops := map[string]uint64{}
	machines := map[string]*core.Machine{}
	step := func(at time.Duration, name string, ev core.Event) {
		now := core.Reading{Mono: at, Boot: at, Wall: at}
		for _, e := range machines[name].Step(now, ev) {
			switch e := e.(type) {
			case core.Load:
				started, ops[name] = append(started, name), e.Op
			case core.Swap:
				ops[name] = e.Op
			}
		}
		for _, ready := range cfg.Common.Ready() {
			for _, e := range machines[ready].Step(now, core.Tick{}) {
				if l, is := e.(core.Load); is {
					started, ops[ready] = append(started, ready), l.Op
				}
			}
		}
	}
	records := map[string]core.Record{}
	add := func(name string, n int) {
		for i := range n {
			cfg.Name = fmt.Sprint(name, i)
			machines[cfg.Name] = core.New(cfg)
		}
	}
	add("held", 200)
	for name := range machines {
		step(0, name, core.Acquire{ID: 1, Wait: true})
		step(0, name, core.Loaded{Op: ops[name]})
		step(0, name, core.Swapped{Op: ops[name], Status: core.Written, Version: "1"})
		records[name] = core.Record{Nonce: cfg.Nonce, Owner: cfg.Owner, Token: 1, Attempt: 1,
			TTL: cfg.TTL, Forever: true}
	}
	at := 4 * cfg.TTL
	started = nil
	for name := range records {
		step(at, name, core.Tick{})
	}
	add("new", 50)
	for i := range 50 {
		step(at, fmt.Sprint("new", i), core.Acquire{ID: 1, Wait: true})
	}
	if len(started) == 200 || len(started) < 60 {
		t.Fatalf("%d of 200 audits at first", len(started))
	}
	audits := started
	started = nil
	for _, name := range audits[:60] {
		step(at, name, core.Loaded{Op: ops[name], Record: records[name], Version: "1"})
	}
	acquisitions := 0
	for _, name := range started {
		if records[name].Nonce == "" {
			acquisitions++
		}
	}
	if acquisitions != 20 {
		t.Errorf("%d of the next %d slots are for acquisitions, want 20", acquisitions,
			len(started))
	}
}

// readers are machines of one session, each of which reads a lease of another session.
type readers struct {
	cfg      core.Config
	at       time.Duration
	machines map[string]*core.Machine
	reading  map[string]uint64 // the reads in flight
}

func newReaders() *readers {
	r := &readers{goldenConfig, 0, map[string]*core.Machine{}, map[string]uint64{}}
	r.cfg.Common = &core.Common{}
	return r
}

func (r *readers) step(name string, ev core.Event) {
	for _, e := range r.machines[name].Step(core.Reading{Mono: r.at, Boot: r.at, Wall: r.at}, ev) {
		if l, is := e.(core.Load); is {
			r.reading[name] = l.Op
		}
	}
}

// acquire lets n more machines want their leases.
func (r *readers) acquire(n int) {
	for range n {
		r.cfg.Name = fmt.Sprint(len(r.machines))
		r.machines[r.cfg.Name] = core.New(r.cfg)
		r.step(r.cfg.Name, core.Acquire{ID: 1, Wait: true})
	}
}

// answer answers the reads in flight, which have taken that long, and returns their number.
func (r *readers) answer(took time.Duration) int {
	r.at += took
	answered := r.reading
	r.reading = map[string]uint64{}
	for name, op := range answered {
		r.step(name, core.Loaded{Op: op, Version: "1", Record: core.Record{Nonce: "other",
			Owner: "other", Token: 1, Attempt: 1, TTL: r.cfg.TTL}})
	}
	for _, ready := range r.cfg.Common.Ready() {
		r.step(ready, core.Tick{})
	}
	return len(answered)
}

// A thousand reads one after another say nothing about a hundred at once: the bound of calls in
// flight rises only when it is reached.
func TestSlots_OnlyABoundThatIsReachedRises(t *testing.T) {
	r := newReaders()
	for range 1000 {
		r.acquire(1)
		r.answer(0)
	}
	r.acquire(500)
	if got := []int{r.answer(0), r.answer(0), r.answer(0)}; !slices.Equal(got, []int{8, 9, 10}) {
		t.Errorf("%v reads in flight, want [8 9 10]", got)
	}
}

// Calls that take most of the operation timeout have waited for others in the store, if one call
// took less before: renewals would wait there as well. A store each of whose calls takes that long
// is not crowded.
func TestSlots_CallsThatWaitInTheStoreHalveTheBound(t *testing.T) {
	for _, c := range []struct {
		alone time.Duration
		want  []int
	}{
		{100 * time.Millisecond, []int{8, 4, 5, 6}},
		{600 * time.Millisecond, []int{8, 9, 10, 11}},
	} {
		r := newReaders()
		r.acquire(1)
		r.answer(c.alone)
		r.acquire(100)
		var got []int
		for range c.want {
			got = append(got, r.answer(600*time.Millisecond))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after a call of %v: %v reads in flight, want %v", c.alone, got, c.want)
		}
	}
}
