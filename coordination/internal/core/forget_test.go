package core_test

import (
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// If a claim was never answered, a machine remembers its token after the claim has lapsed. A new
// machine would use that token again, and take the old claim for its own if that lands late.
func TestForget_NotWhileAWriteMayLand(t *testing.T) {
	m := core.New(goldenConfig)
	at := func(d time.Duration, ev core.Event) {
		m.Step(core.Reading{Mono: d, Boot: d, Wall: d}, ev)
	}
	at(0, core.Acquire{ID: 1, Wait: true})
	at(time.Second, core.Loaded{Op: 1})
	at(2*time.Second, core.Cancel{ID: 1})
	for d := 3 * time.Second; d < time.Minute; d += time.Second {
		at(d, core.Tick{}) // no answer
	}
	if !m.Quiet() || m.Forget() {
		t.Fatal("forgotten, or not quiet")
	}
	now := core.Reading{Mono: time.Minute, Boot: time.Minute, Wall: time.Minute}
	look := m.Step(now, core.Acquire{ID: 2})[0].(core.Load)
	claim := m.Step(now, core.Loaded{Op: look.Op})[0].(core.Swap)
	if claim.Next.Token != 2 {
		t.Errorf("the next claim has token %d", claim.Next.Token)
	}
	m.Step(now, core.Swapped{Op: claim.Op, Status: core.Written, Version: "v"})
	release := m.Step(now, core.Release{ID: 3, Token: claim.Next.Token})[1].(core.Swap)
	m.Step(now, core.Swapped{Op: release.Op, Status: core.Written, Version: "w"})
	if !m.Quiet() || !m.Forget() {
		t.Fatal("not forgotten after a later write")
	}
}
