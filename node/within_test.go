package node

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/child"
)

func TestWithin_TellsOfAFunctionThatDoesNotReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log child.Screen
		r := &runner{cfg: RunConfig{StartTimeout: 30 * time.Second, StopTimeout: 10 * time.Second,
			Logger: slog.New(slog.NewTextHandler(&log, nil))}}
		block := make(chan struct{})
		f := func(context.Context) error { <-block; return nil }
		began := time.Now()
		require.ErrorContains(t, r.within(t.Context(), "RunConfig.Provider", f), "after 30s")
		require.Equal(t, 30*time.Second, time.Since(began))
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), "does not return")
		require.Contains(t, log.String(), "RunConfig.Provider")

		began = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		require.ErrorIs(t, r.within(ctx, "RunConfig.Provider", f), ErrStop)
		require.Equal(t, 7*time.Second, time.Since(began))
		close(block)
		synctest.Wait()
	})
}
