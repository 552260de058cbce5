package coordination_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/meters/meterstest"
)

func timed(owner string, meters metric.MeterProvider) coordination.Config {
	cfg := times
	cfg.Owner, cfg.Meters = owner, meters
	return cfg
}

func TestStatus_CountsWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdk.NewManualReader()
		provider := sdk.NewMeterProvider(sdk.WithReader(reader))
		store := &flaky{Store: memory.New()}
		session, err := coordination.Open(store, timed("a", provider))
		require.NoError(t, err)
		other, err := coordination.Open(store, timed("b", nil))
		require.NoError(t, err)
		require.Zero(t, session.Status().Renewed)
		// A series that appears with 1 has not increased for Prometheus, so none appears late.
		fresh := meterstest.Collect(t, reader, "why", "operation", "result")
		require.Contains(t, fresh, "concord.lease.lost expired")
		require.Contains(t, fresh, "concord.lease.store.calls swap failure")

		x, err := session.Lease("x").TryAcquire(t.Context())
		require.NoError(t, err)
		_, err = session.Lease("y").TryAcquire(t.Context())
		require.NoError(t, err)
		_, err = other.Lease("z").TryAcquire(t.Context())
		require.NoError(t, err)
		_, err = session.Lease("z").TryAcquire(t.Context())
		require.ErrorIs(t, err, coordination.ErrHeld)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := session.Lease("z").Acquire(ctx)
			done <- err
		}()
		synctest.Wait()
		st := session.Status()
		require.Equal(t, []int{2, 0, 1}, []int{st.Held, st.NearExpiry, st.Waiting})
		require.Equal(t, []uint64{2, 1, 0}, []uint64{st.Granted, st.Taken, st.Unknown})
		cancel()
		require.ErrorIs(t, <-done, coordination.ErrHeld)
		require.NoError(t, x.Release(t.Context()))
		require.Equal(t, uint64(1), session.Status().Released)

		store.away.Store(true)
		time.Sleep(22 * time.Second)
		st = session.Status()
		require.Equal(t, []int{1, 1, 0}, []int{st.Held, st.NearExpiry, st.Waiting})
		require.Positive(t, st.Renewed)
		time.Sleep(time.Minute)
		st = session.Status()
		require.Equal(t, map[coordination.Loss]uint64{coordination.Expired: 1}, st.Lost)
		require.Zero(t, st.Held+st.NearExpiry)
		require.Positive(t, st.Calls["swap"].Failed)

		got := meterstest.Collect(t, reader)
		for name, want := range map[string]int64{
			"concord.lease.held": 0, "concord.lease.near_expiry": 0, "concord.lease.waiting": 0,
			"concord.lease.granted": 2,
			"concord.lease.taken":   2, "concord.lease.unknown": 0, "concord.lease.released": 1,
			"concord.lease.lost":             1,
			"concord.lease.acquire.duration": 4,
		} {
			require.Equal(t, want, got[name], name)
			require.Contains(t, got, name)
		}
		require.Equal(t, got["concord.lease.store.calls"], got["concord.lease.store.duration"])
		store.away.Store(false)
		_ = session.Close(context.Background())
		_ = other.Close(context.Background())
		require.NotContains(t, meterstest.Collect(t, reader), "concord.lease.held",
			"observed after Close")
	})
}

func TestHolders_YieldsChangesAndNoRenewals(t *testing.T) {
	for what, store := range map[string]coordination.Store{"watched": memory.New(),
		"polled": unwatched{memory.New()}} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sessions [3]*coordination.Session
				for i, owner := range []string{"a", "b", "c"} {
					s, err := coordination.Open(store, coordination.Config{Owner: owner})
					require.NoError(t, err)
					defer func() { _ = s.Close(context.Background()) }()
					sessions[i] = s
				}
				var told []string
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for h, err := range sessions[2].Lease("x").Holders(ctx) {
						if err != nil {
							told = append(told, err.Error())
							continue
						}
						told = append(told, h.Owner+h.Token.String())
					}
				}()
				for _, s := range sessions[:2] {
					time.Sleep(time.Minute)
					g, err := s.Lease("x").TryAcquire(t.Context())
					require.NoError(t, err)
					time.Sleep(time.Minute)
					require.NoError(t, g.Release(t.Context()))
				}
				time.Sleep(time.Minute)
				cancel()
				<-ended
				require.Equal(t, []string{"0", "a1", "1", "b2", "2"}, told)
			})
		})
	}
}

// unwatched is a store without optional abilities.
type unwatched struct{ coordination.Store }

func TestHolders_AnOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		session, err := coordination.Open(store, times)
		require.NoError(t, err)
		store.away.Store(true)
		time.AfterFunc(time.Minute, func() { store.away.Store(false) })
		time.AfterFunc(2*time.Minute, func() { _ = session.Close(context.Background()) })
		var failed, held int
		for _, err := range session.Lease("x").Holders(t.Context()) {
			if err == nil {
				held++
				continue
			}
			require.True(t, errors.Is(err, coordination.ErrUnknown), "%v", err)
			failed++
		}
		require.Equal(t, []int{1, 1}, []int{failed, held})
	})
}

// After an outage the holder is told again, although it is the same: otherwise a reader could not
// tell that the store is back.
func TestHolders_AreToldAgainAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &flaky{Store: memory.New()}
		holder, err := coordination.Open(store.Store, coordination.Config{Owner: "a"})
		require.NoError(t, err)
		defer func() { _ = holder.Close(context.Background()) }()
		_, err = holder.Lease("x").TryAcquire(t.Context())
		require.NoError(t, err)
		session, err := coordination.Open(store, times)
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { store.away.Store(true) })
		time.AfterFunc(2*time.Minute, func() { store.away.Store(false) })
		time.AfterFunc(3*time.Minute, func() { _ = session.Close(context.Background()) })
		var told []string
		for h, err := range session.Lease("x").Holders(t.Context()) {
			if err != nil {
				told = append(told, "outage")
				continue
			}
			told = append(told, h.Owner+h.Token.String())
		}
		require.Equal(t, []string{"a1", "outage", "a1"}, told)
	})
}
