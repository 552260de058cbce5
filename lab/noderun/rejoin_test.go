package noderun_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/gate"
	"github.com/concord-go/concord/internal/lifecycle"
	"github.com/concord-go/concord/internal/membership"
	"github.com/concord-go/concord/node"
)

func TestRun_ADroppedMemberRejoins(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := newHands()
	cfg := quiet(h)
	cfg.Health = &node.Health{}
	nodes, ends := make(chan *node.Node, 2), make(chan error, 2)
	done := background(ctx, cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			nodes <- n
			<-ctx.Done()
			ends <- context.Cause(ctx)
			return nil
		})
		// A user actor that would keep running.
		n.System.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*actor.Stopped); ok {
				ends <- errors.New("user actor stopped")
			}
		}))
		return nil
	})
	first := <-nodes
	(<-h.incarnations).list(false)
	require.ErrorIs(t, <-ends, membership.ErrDropped)
	require.ErrorIs(t, first.Context().Err(), context.Canceled)
	require.ErrorContains(t, <-ends, "user actor stopped")
	second := <-nodes
	require.GreaterOrEqual(t, second.Incarnation, 2) // the port may be in use for a moment
	require.NotEqual(t, first.System.ID, second.System.ID)
	require.Equal(t, first.System.Address(), second.System.Address(), "the port is kept")
	require.Eventually(t, func() bool {
		return cfg.Health.Ready() == nil
	}, patience, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
}

// TestRun_RemovedDuringTheFirstStart drops a member while its first incarnation waits for a
// component. The start ends at once, and the session works in the next incarnation.
func TestRun_RemovedDuringTheFirstStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, cfg, store := newHands(), quiet(newHands()), memory.New()
	cfg.Provider, cfg.StartTimeout = h.provider, time.Hour
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	waits := make(chan struct{})
	err := node.Run(ctx, cfg, func(n *node.Node) error {
		if n.Incarnation == 1 {
			go func() { <-waits; (<-h.incarnations).list(false) }()
			lifecycle.OnStart(n.System, "test", func(ctx context.Context) error {
				close(waits)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}
		n.Go(func(context.Context) error {
			g, err := n.Session.Lease("x").TryAcquire(ctx)
			if err != nil {
				return err // before the end of the context, which would hide it
			}
			defer cancel()
			return g.Release(context.Background())
		})
		return nil
	})
	require.NoError(t, err)
}

// TestRun_GuardAndMajorityAreReleasedAtTheEnd also shows that a single member opens its gate with
// both.
func TestRun_GuardAndMajorityAreReleasedAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cfg := quiet(newHands())
	store := memory.New()
	cfg.Store = func() (coordination.Store, error) { return store, nil }
	cfg.Guard = "guard/a"
	require.NoError(t, node.Run(ctx, cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			defer cancel()
			for !gate.Of(n.System).State().Open {
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		return nil
	}))
	other, err := coordination.Open(store, coordination.Config{})
	require.NoError(t, err)
	for _, name := range []string{"guard/a", "concord.majority/" + cfg.Cluster} {
		g, err := other.Lease(name).TryAcquire(t.Context())
		require.NoError(t, err, name)
		require.NoError(t, g.Release(t.Context()))
	}
	require.NoError(t, other.Close(t.Context()))
}

func TestRun_ExitsInsteadOfRejoiningIfToldTo(t *testing.T) {
	h := newHands()
	cfg := quiet(h)
	cfg.OnSplit = node.Exit
	err := node.Run(t.Context(), cfg, func(n *node.Node) error {
		n.Go(func(ctx context.Context) error {
			(<-h.incarnations).list(false)
			<-ctx.Done()
			return nil
		})
		return nil
	})
	require.ErrorIs(t, err, node.ErrSplit)
	require.ErrorIs(t, err, membership.ErrDropped)
	require.Equal(t, 5, node.ExitCode(err))
}
