package guard

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A peer gets its rate, whatever it sends at a time, and at most the burst more.
func TestPace_APeerGetsItsRate(t *testing.T) {
	for name, c := range map[string]struct{ messages, bytes int }{
		"single messages": {1, 100}, "batches": {200, 20_000}, "large messages": {1, 1 << 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := pace{rate: 10_000}
			taken, begun := 0, time.Now()
			for time.Since(begun) < 10*time.Second {
				require.NoError(t, p.wait(t.Context(), c.messages, c.bytes), name)
				taken += c.messages + c.bytes>>10
			}
			most := 10_000*10 + 10_000/20 + c.messages + c.bytes>>10
			require.LessOrEqual(t, taken, most, name)
			require.GreaterOrEqual(t, taken, 10_000*10, name)
		})
	}
}

func TestPace_ASlowPeerIsNotDelayed(t *testing.T) {
	p, now := pace{rate: 10_000}, time.Unix(1000, 0)
	for range 1000 {
		require.LessOrEqual(t, p.take(now, 10, 100), time.Duration(0))
		now = now.Add(time.Millisecond)
	}
	now = now.Add(time.Hour) // saves up no more than the burst
	require.LessOrEqual(t, p.take(now, 500, 0), time.Duration(0))
	require.Equal(t, 100*time.Millisecond, p.take(now, 1000, 0))
	require.Zero(t, (&pace{}).take(now, 1<<20, 1<<30), "without a bound")
}

func TestPace_TheWaitEndsWithTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace{rate: 10_000}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Error(t, p.wait(ctx, 1<<20, 0))
	})
}

// All streams of a peer share its rate.
func TestPace_IsOfAPeer(t *testing.T) {
	ps := paces{rate: 10_000, all: map[string]*pace{}}
	one, two, other := ps.of("a:1"), ps.of("a:1"), ps.of("b:1")
	now := time.Unix(1000, 0)
	require.LessOrEqual(t, one.take(now, 500, 0), time.Duration(0))
	require.Equal(t, 100*time.Millisecond, two.take(now, 1000, 0))
	require.LessOrEqual(t, other.take(now, 500, 0), time.Duration(0))
	for _, p := range []*pace{one, two, other} {
		ps.done(p)
	}
	require.Empty(t, ps.all)
}

// What exceeds the rate waits, and nothing is lost.
func TestPace_NothingIsLost(t *testing.T) {
	a, b := listen(t, Config{}), listen(t, Config{MaxRate: 10_000})
	b.sees(map[string]string{"a": a.address})
	s := a.mustDial(b)
	var want []string
	for i := range 5 {
		want = append(want, fmt.Sprint(i, strings.Repeat("x", 1<<20))) // 100 ms each
		s.send(text(b, want[i]))
	}
	require.Eventually(t, func() bool {
		return len(b.seen()) == len(want)
	}, patience, time.Millisecond)
	require.Equal(t, want, b.seen())
	require.Equal(t, new(Process).Refusals(), b.process.Refusals())
}
