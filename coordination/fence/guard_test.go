package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func nothing(context.Context) error { return nil }

func TestGuard_RefusesLowerTokens(t *testing.T) {
	var g fence.Guard
	ctx := t.Context()
	require.NoError(t, g.Do(ctx, "ledger", 5, nothing))
	require.NoError(t, g.Do(ctx, "ledger", 5, nothing), "the same tenure")
	require.NoError(t, g.Do(ctx, "other", 1, nothing), "another resource")

	err := g.Do(ctx, "ledger", 4, func(context.Context) error {
		t.Error("a stale effect ran")
		return nil
	})
	require.ErrorIs(t, err, fence.ErrStale)
	stale, ok := errors.AsType[*fence.StaleError](fmt.Errorf("wrapped: %w", err))
	require.True(t, ok)
	require.Equal(t, fence.StaleError{Resource: "ledger", Token: 4, Highest: 5}, *stale)
	require.EqualError(t, err, `fence: stale token 4 for "ledger", 5 has been seen`)
}

func TestGuard_RefusesWhatIsNoToken(t *testing.T) {
	var g fence.Guard
	for _, token := range []coordination.Token{0, 1 << 63, 1<<64 - 1} {
		require.ErrorIs(t, g.Do(t.Context(), "ledger", token, nothing), fence.ErrInvalid)
	}
	require.NoError(t, g.Do(t.Context(), "ledger", 1<<63-1, nothing))
}

func TestGuard_ReturnsTheErrorOfTheEffect(t *testing.T) {
	var g fence.Guard
	broken := errors.New("disk full")
	require.ErrorIs(t, g.Do(t.Context(), "ledger", 2, func(context.Context) error {
		return broken
	}), broken)
	require.Panics(t, func() {
		_ = g.Do(t.Context(), "ledger", 3, func(context.Context) error { panic("bug") })
	})
	require.ErrorIs(t, g.Do(t.Context(), "ledger", 2, nothing), fence.ErrStale)
	require.NoError(t, g.Do(t.Context(), "ledger", 4, nothing), "a panic leaves nothing under way")
}

func TestGuard_IsBounded(t *testing.T) {
	g := fence.Guard{Limit: 2}
	ctx := t.Context()
	long := strings.Repeat("x", 256)
	require.ErrorIs(t, g.Do(ctx, long, 7, nothing), fence.ErrInvalid)
	named := g.Handler(func(*http.Request) string { return long }, http.NotFoundHandler())
	require.Equal(t, http.StatusBadRequest, answer(named, "1").Code)
	require.NoError(t, g.Do(ctx, "a", 7, nothing))
	require.NoError(t, g.Do(ctx, "b", 7, nothing))
	require.ErrorIs(t, g.Do(ctx, "c", 7, nothing), fence.ErrFull)
	require.NoError(t, g.Do(ctx, "a", 8, nothing), "known resources go on")

	require.NoError(t, g.Do(ctx, "a", 8, func(context.Context) error {
		require.False(t, g.Forget("a"), "under way")
		return nil
	}))
	require.True(t, g.Forget("a"))
	require.NoError(t, g.Do(ctx, "c", 7, nothing))
}

// A holder that is paused in the middle of its effect sees its context end, and the next holder
// waits for it.
func TestGuard_HigherTokenEndsAndAwaitsLowerEffects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g fence.Guard
		var order []string // guarded by the fence
		finish := make(chan struct{})
		var told error
		var work sync.WaitGroup
		work.Go(func() {
			_ = g.Do(t.Context(), "ledger", 1, func(ctx context.Context) error {
				<-ctx.Done()
				told = context.Cause(ctx)
				<-finish
				order = append(order, "old")
				return nil
			})
		})
		synctest.Wait()
		work.Go(func() {
			_ = g.Do(t.Context(), "ledger", 2, func(context.Context) error {
				order = append(order, "new")
				return nil
			})
		})
		synctest.Wait() // the new holder waits for the old effect
		require.ErrorIs(t, g.Do(t.Context(), "ledger", 1, nothing), fence.ErrStale,
			"while the new one waits")
		impatient, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("shutting down"))
		require.ErrorContains(t, g.Do(impatient, "ledger", 2, nothing), "shutting down")
		close(finish)
		work.Wait()
		require.Equal(t, []string{"old", "new"}, order)
		require.ErrorIs(t, told, fence.ErrStale)
	})
}

func TestGuard_WhoWaitsIsOvertakenToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g fence.Guard
		finish := make(chan struct{})
		errs := make([]error, 4)
		var work sync.WaitGroup
		for token := coordination.Token(1); token <= 3; token++ {
			work.Go(func() {
				errs[token] = g.Do(t.Context(), "ledger", token, func(context.Context) error {
					<-finish
					return nil
				})
			})
			synctest.Wait()
		}
		close(finish)
		work.Wait()
		require.NoError(t, errs[1])
		require.ErrorIs(t, errs[2], fence.ErrStale)
		require.NoError(t, errs[3])
	})
}

// With many tenures at once, no effect runs together with an effect of another token, and the
// tokens of the effects never decrease.
func TestGuard_ConcurrentEffectsNeverMixTokens(t *testing.T) {
	var g fence.Guard
	var mu sync.Mutex
	var last coordination.Token
	running := map[coordination.Token]int{}
	admitted := 0
	enter := func(token coordination.Token) {
		mu.Lock()
		defer mu.Unlock()
		if token < last {
			t.Errorf("an effect with token %d after one with %d", token, last)
		}
		last = token
		running[token]++
		admitted++
		if len(running) > 1 {
			t.Errorf("under way together: %v", running)
		}
	}
	leave := func(token coordination.Token) {
		mu.Lock()
		defer mu.Unlock()
		if running[token]--; running[token] == 0 {
			delete(running, token)
		}
	}
	var work sync.WaitGroup
	for seed := range uint64(8) {
		work.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for n := range 300 {
				token := coordination.Token(1 + n/10 + r.IntN(5))
				err := g.Do(t.Context(), "ledger", token, func(context.Context) error {
					enter(token)
					defer leave(token)
					return nil
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Errorf("token %d: %v", token, err)
				}
			}
		})
	}
	work.Wait()
	require.Positive(t, admitted)
	require.NoError(t, g.Do(t.Context(), "ledger", 100, nothing))
}
