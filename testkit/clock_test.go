package testkit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/testkit"
)

// acquire waits for a lease of a member in the background and sends the grant to the channel.
func acquire(ctx context.Context, m *testkit.Member, lease string) <-chan *coordination.Grant {
	granted := make(chan *coordination.Grant, 1)
	go func() {
		defer close(granted)
		if g, err := m.Session.Lease(lease).Acquire(ctx); err == nil {
			granted <- g
		}
	}()
	return granted
}

// takeover cuts the holder off from the store and lets another member try to acquire every 10ms. It
// returns the true time between the moment at which the holder was certain that all its work had
// ended and the takeover; it is negative if both could work at the same time.
func takeover(t *testing.T, c *testkit.Cluster) (gap time.Duration) {
	t.Helper()
	g, err := c.Member(0).Session.Lease("l").TryAcquire(t.Context())
	require.NoError(t, err)
	c.Advance(time.Minute)
	require.NoError(t, g.Check())
	c.Member(0).Store.Set(testkit.StoreFaults{Away: true})
	next := acquire(t.Context(), c.Member(1), "l")
	for start := time.Now(); time.Since(start) < 5*time.Minute; c.Advance(10 * time.Millisecond) {
		if g.Remaining() > 0 {
			gap = 0
		} else {
			gap += 10 * time.Millisecond
		}
		select {
		case <-next:
			if left := g.Remaining(); left > 0 {
				return -left
			}
			return gap
		default:
		}
	}
	t.Fatal("nobody acquired within five minutes")
	return 0
}

func TestClock_RatesWithinTheBoundNeverOverlap(t *testing.T) {
	for _, holder := range []float64{0.99, 1, 1.01} {
		for _, contender := range []float64{0.99, 1, 1.01} {
			t.Run(fmt.Sprintf("holder %v, contender %v", holder, contender), func(t *testing.T) {
				rates := testkit.Clocks(func(i int, k *testkit.Clock) {
					k.SetRate([]float64{holder, contender}[i])
				})
				testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
					gap := takeover(t, c)
					require.GreaterOrEqual(t, gap, time.Duration(0))
				}, rates)
			})
		}
	}
}

// TestClock_ARateBeyondTheBoundIsSeenToOverlap shows that the test above can detect two holders.
func TestClock_ARateBeyondTheBoundIsSeenToOverlap(t *testing.T) {
	rates := testkit.Clocks(func(i int, k *testkit.Clock) { k.SetRate([]float64{0.5, 1}[i]) })
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		require.Negative(t, takeover(t, c))
	}, rates)
}

func TestClock_AWallJumpEndsNoExclusionAndMovesNoTimer(t *testing.T) {
	for _, jump := range []time.Duration{-24 * time.Hour, -time.Second, time.Second,
		24 * time.Hour} {
		t.Run(jump.String(), func(t *testing.T) {
			testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
				g, err := c.Member(0).Session.Lease("l").TryAcquire(t.Context())
				require.NoError(t, err)
				next := acquire(t.Context(), c.Member(1), "l")
				var rang time.Duration
				start := time.Now()
				c.Member(0).Clock().AfterFunc(time.Hour, func() { rang = time.Since(start) })
				for range 3 {
					c.Advance(time.Minute)
					c.Member(0).Clock().Jump(jump)
					c.Member(1).Clock().Jump(-jump)
				}
				c.Advance(time.Hour)
				require.Equal(t, time.Hour, rang)
				require.Equal(t, c.Member(0).Clock().Wall(), time.Now().Add(3*jump).Round(0))
				select {
				case <-next: // ahead by more than the TTL: the holder stopped before the takeover
					require.Greater(t, jump, time.Minute)
					require.ErrorIs(t, g.Check(), coordination.ErrLost)
				default:
					require.NoError(t, g.Check())
				}
			})
		})
	}
}

// fenced is a resource that rejects tokens older than the newest it has seen.
type fenced struct{ newest coordination.Token }

var errFenced = errors.New("an older tenure")

func (f *fenced) write(token coordination.Token) error {
	if token < f.newest {
		return errFenced
	}
	f.newest = token
	return nil
}

// A machine that is suspended together with its clocks cannot know that its lease has expired. Only
// the token prevents its later writes.
func TestSuspend_TheFormerHolderIsFenced(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		resource := &fenced{}
		old := c.Member(0)
		g, err := old.Session.Lease("l").TryAcquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, resource.write(g.Token()))
		before := old.Clock().Now()
		old.Suspend()
		next := acquire(t.Context(), c.Member(1), "l")
		c.Advance(2 * time.Minute) // four times the TTL
		newer := <-next
		require.NotNil(t, newer)
		require.NoError(t, resource.write(newer.Token()))

		require.Equal(t, before, old.Clock().Now())
		require.NoError(t, g.Check(), "it believes that it holds")
		require.ErrorIs(t, resource.write(g.Token()), errFenced)

		old.Thaw()
		require.NoError(t, g.Check(), "its clock is two minutes behind, and tells it nothing")
		require.ErrorIs(t, resource.write(g.Token()), errFenced)
		c.Advance(time.Minute)
		lost, ok := errors.AsType[*coordination.LostError](g.Check())
		require.True(t, ok, "its next renewal tells it")
		// The session that took the lease over has ended the record of the old session, and deleted
		// it three TTLs later.
		require.Equal(t, coordination.RecordDeleted, lost.Why)
		require.NoError(t, newer.Check())
	})
}

// A pause that the clock sees needs no fencing.
func TestFreeze_TheFormerHolderKnows(t *testing.T) {
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		g, err := c.Member(0).Session.Lease("l").TryAcquire(t.Context())
		require.NoError(t, err)
		c.Member(0).Freeze()
		c.Advance(time.Minute)
		require.ErrorIs(t, g.Check(), coordination.ErrLost)
	})
}

func TestClock_RateGovernsTimersAndReadings(t *testing.T) {
	testkit.Run(t, 1, func(t *testing.T, c *testkit.Cluster) {
		k := c.Member(0).Clock()
		start, shown := time.Now(), k.Now()
		var rang []time.Duration
		ring := func() { rang = append(rang, time.Since(start)) }
		k.AfterFunc(time.Minute, ring)
		withdrawn := k.AfterFunc(time.Minute, ring)
		require.True(t, withdrawn())
		require.False(t, withdrawn())
		c.Advance(30 * time.Second)
		k.SetRate(2)
		c.Advance(time.Minute) // in 15s the other clock advances by 30s
		require.Equal(t, []time.Duration{45 * time.Second}, rang)
		require.Equal(t, 150*time.Second, k.Now().Sub(shown))
		k.SetRate(0.5)
		k.AfterFunc(10*time.Second, ring)
		c.Advance(time.Minute)
		require.Equal(t, []time.Duration{45 * time.Second, 110 * time.Second}, rang)
		require.Equal(t, 180*time.Second, k.Now().Sub(shown))
		k.AfterFunc(-time.Hour, ring) // fires at once
		c.Advance(0)
		require.Len(t, rang, 3)
	})
}

func TestClock_BelongsToTheMachine(t *testing.T) {
	ahead := testkit.Clocks(func(i int, k *testkit.Clock) { k.Jump(time.Duration(i) * time.Hour) })
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		m := c.Member(1)
		require.Equal(t, time.Hour, time.Until(m.Clock().Now()))
		m.Clock().Jump(-time.Hour)
		require.Equal(t, time.Hour, time.Until(m.Clock().Now()), "what runs does not see it")
		m.Suspend()
		c.Advance(time.Minute)
		next := m.Restart()
		require.Same(t, m.Clock(), next.Clock())
		require.Equal(t, -time.Minute, time.Until(next.Clock().Now()),
			"a new process does; and the clock runs again")
		c.Advance(time.Second)
		require.Equal(t, -time.Minute, time.Until(next.Clock().Now()))
		for _, m := range c.Members() {
			require.True(t, m.Sees(c.Member(0)) && m.Sees(c.Member(1)))
		}
	}, ahead)
}

// The timers of a member's components use its clock: a suspended member that thaws late sends no
// extra hellos and continues where it stopped.
func TestSuspend_MembershipStandsStill(t *testing.T) {
	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
		c.Advance(time.Minute)
		sent := 0
		c.Observe(func(p testkit.Packet) {
			if p.From == 2 {
				sent++
			}
		})
		c.Member(2).Suspend()
		c.Advance(time.Hour)
		require.Zero(t, sent)
		c.Member(2).Thaw()
		c.Advance(time.Minute)
		require.NotZero(t, sent)
		for _, m := range c.Members() {
			require.True(t, m.Sees(c.Member(2)))
		}
	})
}

// Actors written for a test use the clock of their member.
func ExampleMember_Clock() {
	var t *testing.T // of the test
	testkit.Run(t, 2, func(t *testing.T, c *testkit.Cluster) {
		c.Member(1).Clock().SetRate(0.99) // 1 % slow
		for _, m := range c.Members() {
			m.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
				if _, ok := ctx.Message().(*actor.Started); ok {
					self, system := ctx.Self(), ctx.ActorSystem()
					m.Clock().AfterFunc(time.Minute, func() {
						system.Root.Send(self, "a minute, by this clock")
					})
				}
			}))
		}
		c.Advance(time.Minute) // member 0 has received it, member 1 has not
	})
}
