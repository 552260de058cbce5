package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// S13b: what was sent to a host that is gone is not answered, unless the host gave the shard up.
func TestRoute_OrphansWhatALostHostDoesNotAnswer(t *testing.T) {
	at7 := core.Orphaned{Tenure: core.Tenure{Shard: 0, Token: 7}}
	active := func(from core.Member, token uint64) core.Received {
		return core.Received{From: from, Message: core.Active{Shard: 0, Token: token}}
	}
	pause := core.Received{From: b, Message: core.Pause{Shard: 0, Token: 7}}
	lost := core.Received{From: b, Message: core.Inactive{Shard: 0, Token: 7}}
	ended := core.Received{From: b, Message: core.Farewell()}
	without := core.View{Self: a, Members: []core.Member{a, c}}
	for name, story := range map[string]struct {
		events []core.Event
		orphan bool // by the last event
	}{
		"dropped":                         {[]core.Event{without}, true},
		"dropped while it gives up":       {[]core.Event{pause, without}, true},
		"dropped after it has ended":      {[]core.Event{pause, ended, without}, false},
		"ended, dropped, another view":    {[]core.Event{pause, ended, without, without}, false},
		"lost the lease":                  {[]core.Event{lost}, false},
		"lost it, and another has it":     {[]core.Event{lost, active(c, 8)}, true},
		"lost it while it gave up":        {[]core.Event{pause, lost, active(c, 8)}, true},
		"another has it without a notice": {[]core.Event{active(c, 8)}, true},
		"gave it up, and another has it":  {[]core.Event{pause, active(c, 8)}, false},
		"gave it up, another, dropped":    {[]core.Event{pause, active(c, 8), without}, true},
		"gave it up, another, ended": {[]core.Event{pause, active(c, 8), ended, without},
			false},
		"other members are not its host": {[]core.Event{core.View{Self: a,
			Members: []core.Member{a, b}}}, false},
	} {
		s := tell(core.NewRegion(config(1)))
		s.step(active(b, 7))
		for i, ev := range story.events {
			last := i == len(story.events)-1
			require.Equal(t, last && story.orphan, contains(s.step(ev), at7), "%s: %d", name, i)
		}
	}
}

func contains(effects []core.Effect, e core.Effect) bool {
	for _, o := range effects {
		if o, ok := o.(core.Orphaned); ok && o == e {
			return true
		}
	}
	return false
}
