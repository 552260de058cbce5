package core_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// The reads of many leases fail together, as while the first connections are made. The bound of
// calls in flight is halved once, not once for each of them.
func TestSlots_FailuresThatAreTogetherHalveTheBoundOnce(t *testing.T) {
	common := &core.Common{}
	machines := map[string]*core.Machine{}
	for i := range 300 {
		cfg := goldenConfig
		cfg.Name, cfg.Common = fmt.Sprint(i), common
		machines[cfg.Name] = core.New(cfg)
	}
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range machines {
			if !yield(name) {
				return
			}
		}
	})
	reading := map[string]uint64{} // the reads in flight
	step := func(at time.Duration, name string, ev core.Event) {
		now := core.Reading{Mono: at, Boot: at, Wall: at}
		for _, e := range machines[name].Step(now, ev) {
			if l, is := e.(core.Load); is {
				reading[name] = l.Op
			}
		}
	}
	settle := func(at time.Duration) {
		for ready := common.Ready(); len(ready) > 0; ready = common.Ready() {
			for _, name := range ready {
				step(at, name, core.Tick{})
			}
		}
	}
	for _, name := range names {
		step(0, name, core.Acquire{ID: 1, Wait: true})
	}
	settle(0)
	if len(reading) != 128 {
		t.Fatalf("%d reads in flight at first", len(reading))
	}
	failed := reading
	reading = map[string]uint64{}
	for name, op := range failed {
		step(time.Second, name, core.Loaded{Op: op, Err: errors.New("no connection")})
	}
	settle(time.Second)
	if len(reading) != 64 {
		t.Errorf("%d reads in flight after they have failed together, want 64", len(reading))
	}
}
