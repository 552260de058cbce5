package core_test

import (
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// TestInherit_WhatIsTakenAtOnce checks which records are taken at once, and that the record of
// another owner is waited for.
func TestInherit_WhatIsTakenAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		record  core.Record
		inherit bool
		want    bool
	}{
		"own predecessor": {core.Record{Owner: "me", Nonce: "before"}, true, true},
		"held through its session": {core.Record{Owner: "me", Nonce: "before", Session: 3},
			true, true},
		"held for ever": {
			core.Record{Owner: "me", Nonce: "before", Forever: true}, true, true},
		"another owner": {core.Record{Owner: "other", Nonce: "before"}, true,
			false},
		"an owner whose name begins alike": {core.Record{Owner: "me2", Nonce: "before"}, true,
			false},
		"an owner without a name": {core.Record{Nonce: "before"}, true, false},
		"without Inherit": {core.Record{Owner: "me", Nonce: "before"},
			false, false},
	} {
		cfg := testConfig
		cfg.Owner, cfg.Nonce, cfg.Inherit, cfg.Jitter = "me", "mine", c.inherit, func() float64 {
			return 0.5
		}
		m := core.New(cfg)
		load := m.Step(core.Reading{}, core.Acquire{ID: 1, Wait: true})
		op := load[0].(core.Load).Op
		c.record.Token, c.record.Attempt, c.record.TTL = 7, 1, time.Minute
		var swapped *core.Swap
		for _, e := range m.Step(core.Reading{}, core.Loaded{Op: op, Version: "v7",
			Record: c.record}) {
			if s, ok := e.(core.Swap); ok {
				swapped = &s
			}
		}
		if (swapped != nil) != c.want {
			t.Errorf("%s: claimed at once: %v, want %v", name, swapped != nil, c.want)
		}
		if swapped != nil && (swapped.Old != "v7" || swapped.Next.Token != 8) {
			t.Errorf("%s: %+v, want token 8 on v7", name, *swapped)
		}
	}
}
