package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// A server that gets slow may carry out reads that were given up, and those after them. The read of
// a held lease that is not renewed has time: a pause follows each one that is not answered.
func TestAudit_APauseFollowsAReadWithoutAnAnswer(t *testing.T) {
	for _, shared := range []bool{false, true} {
		cfg := goldenConfig
		cfg.Shared, cfg.Forever, cfg.Common = shared, !shared, &core.Common{}
		m := core.New(cfg)
		at := time.Duration(0)
		step := func(ev core.Event) []core.Effect {
			return m.Step(core.Reading{Mono: at, Boot: at, Wall: at}, ev)
		}
		if shared {
			step(core.Backed{Token: 1, Validity: core.Validity{StopAfter: time.Hour,
				ValidFor: time.Hour}})
		}
		read := step(core.Acquire{ID: 1})[0].(core.Load)
		claim := step(core.Loaded{Op: read.Op})[0].(core.Swap)
		step(core.Swapped{Op: claim.Op, Status: core.Written, Version: "1"})
		var begun []time.Duration
		for range 12 { // each read begins at one wake, and is given up at the next
			at, _ = m.Wake()
			for _, e := range step(core.Tick{}) {
				if _, is := e.(core.Load); is {
					begun = append(begun, at)
				}
			}
		}
		var pauses []time.Duration
		for i := range len(begun) - 1 {
			pauses = append(pauses, begun[i+1]-begun[i]-cfg.Operation*9/8)
		}
		want := []time.Duration{cfg.Renew / 8, cfg.Renew / 4, cfg.Renew / 2, cfg.Renew, cfg.Renew}
		if !slices.Equal(pauses, want) {
			t.Errorf("shared=%v: pauses of %v, want %v", shared, pauses, want)
		}
	}
}
