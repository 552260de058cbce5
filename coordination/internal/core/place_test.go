package core_test

import (
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// TestFair_ANewSessionTakesItsPlaceAtOnce has the session record written while the waiter reads the
// record of the holder's session: the waiter had no right to a place before, and takes one now.
func TestFair_ANewSessionTakesItsPlaceAtOnce(t *testing.T) {
	cfg := goldenConfig
	cfg.Shared, cfg.Fair = true, true
	m := core.New(cfg)
	at := func(d time.Duration) core.Reading { return core.Reading{Mono: d, Wall: d} }
	m.Step(at(0), core.Acquire{ID: 1, Wait: true})
	held := core.Record{Owner: "a", Nonce: "other", Token: 4, Attempt: 1, TTL: 12 * time.Second,
		Session: 2}
	m.Step(at(1), core.Loaded{Op: 1, Record: held, Version: "v1"})
	m.Step(at(2), core.Backed{Token: 1, Validity: core.Validity{Sent: at(0),
		StopAfter: 9 * time.Second, ValidFor: 11 * time.Second}})
	m.Step(at(3), core.SessionLoaded{Op: 2, Version: "s1",
		Record: core.Record{Nonce: "other", Token: 2, Attempt: 1, TTL: 12 * time.Second}})
	if due, ok := m.Wake(); !ok || due > 4 {
		m.Step(at(4), core.Tick{})
	}
	for _, e := range m.Step(at(5), core.Loaded{Op: 3, Record: held, Version: "v1"}) {
		if _, ok := e.(core.Enqueue); ok {
			return
		}
	}
	t.Error("the waiter has no place after the next read, or does not read")
}
