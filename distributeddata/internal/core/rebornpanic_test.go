package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/wire"
)

// The step in which a replica notices that it was restored, or the one in which its events are
// redone, panics at each possible place. The events are redone all the same, and every call is
// answered once. The others have used as many numbers as the restored replica, or fewer.
func TestRestored_AStepThatPanics(t *testing.T) {
	for _, acts := range [][]string{{"new"}, {"new", "newer"}} {
		for place, blasted := 1, 1; blasted > 0; place++ {
			l, snapshot := restorable(t)
			l.deliver(all)
			l.cores["a"] = snapshot
			var calls []uint64
			for _, e := range acts {
				calls = append(calls, l.act(e))
			}
			l.deliver(of(wire.ReplicatorPush))
			l.fuse["a"] = place
			l.deliver(of(wire.ReplicatorAck))
			calls = append(calls, l.act("later"))
			l.settled()
			for _, id := range calls {
				require.Contains(t, l.done, id, "place %d", place)
			}
			for _, n := range l.order {
				got, err := shown(l.cores[n].Keys())
				require.NoError(t, err)
				for _, e := range append([]string{"base", "old"}, acts...) {
					require.Contains(t, got, "s/"+e+"=1\n", "place %d, %s", place, n)
				}
			}
			if blasted = l.blasted; blasted == 0 {
				require.Greater(t, place, 20)
			}
		}
	}
}

// A call is not answered twice either if the step panics in which calls that have waited for the
// state for too long are completed.
func TestRestored_AStepThatPanicsEndsNoCallTwice(t *testing.T) {
	for place := 1; ; place++ {
		l, snapshot := restorable(t)
		l.deliver(all)
		l.cores["a"] = snapshot
		l.id++
		calls := []uint64{l.id}
		l.step("a", Update{ID: l.id, Level: majority, Deadline: l.now.Add(time.Second),
			Modify: func(t *Txn) error {
				return perform(t, []op{add("s", "new")})
			}})
		l.step("a", Wake{})
		l.deliver(of(wire.ReplicatorPush))
		l.deliver(of(wire.ReplicatorAck))
		require.NotNil(t, l.cores["a"].revoked)
		for range 3 {
			l.id++
			calls = append(calls, l.id)
			l.step("a", Update{ID: l.id, Deadline: l.now.Add(time.Second),
				Modify: func(*Txn) error {
					return nil
				}})
		}
		l.take(all)
		l.now = l.now.Add(time.Second)
		l.fuse["a"] = place
		l.step("a", Wake{}) // the lab asserts that no call is answered twice
		l.fuse["a"] = 0
		l.settled()
		for _, id := range calls {
			require.Contains(t, l.done, id, "place %d", place)
		}
		if l.blasted == 0 {
			require.Greater(t, place, 4)
			return
		}
	}
}
