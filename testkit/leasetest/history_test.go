package leasetest

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/testkit/history"
)

func inBubble(t *testing.T, run func(e *env)) {
	synctest.Test(t, func(t *testing.T) {
		run(&env{T: t, id: t.Name(), store: memory.New(), start: time.Now()})
	})
}

// TestPausedHolder_HurtsAnOpenTarget is the history of H3 without the fence: no lease can prevent
// it, and the model detects it.
func TestPausedHolder_HurtsAnOpenTarget(t *testing.T) {
	inBubble(t, func(e *env) {
		ok, err := history.Linearizable(history.Lease(), pausedHolder(e, &fenced{open: true}),
			time.Minute)
		if ok || err != nil {
			t.Errorf("linearizable: %v, %v", ok, err)
		}
	})
}

// TestHistories_HaveEverythingInThem ensures that H1 does not become vacuous.
func TestHistories_HaveEverythingInThem(t *testing.T) {
	inBubble(t, func(e *env) {
		seen := map[string]int{}
		for seed := range uint64(5) {
			for _, o := range contest(e, "h", rand.New(rand.NewPCG(seed, 1))) {
				what := [...]string{"acquire", "release", "expire", "write", "read"}[o.Input.Kind]
				switch {
				case !o.Output.Known:
					what += " unknown"
				case o.Output.Value.Granted:
					what += " granted"
				}
				seen[what]++
			}
		}
		t.Log(seen)
		for what, least := range map[string]int{"acquire granted": 15, "acquire": 10,
			"acquire unknown": 5, "release granted": 10,
			"release unknown": 1, "write granted": 15, "read": 10, "expire": 10} {
			if seen[what] < least {
				t.Errorf("%d of %q, want %d", seen[what], what, least)
			}
		}
	})
}
