package coordination_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/file"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/internal/settings"
)

// A restarted process takes over at once the leases of its predecessor, with the next token. A
// process with another name, or one that does not inherit, waits. If the predecessor is still
// alive, it learns of the takeover at its next renewal.
func TestInherit_ASuccessorGoesOnAtOnce(t *testing.T) {
	for name, store := range map[string]func(t *testing.T) coordination.Store{
		"memory": func(*testing.T) coordination.Store { return memory.New() },
		"file": func(t *testing.T) coordination.Store {
			s, err := file.Open(t.TempDir() + "/leases")
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
	} {
		for _, forever := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := store(t)
					session := func(owner string, inherit bool) *coordination.Lease {
						session, err := coordination.Open(s, coordination.Config{
							Owner: owner, Inherit: inherit, Forever: forever, TTL: time.Minute,
							LockDelay: time.Hour,
						})
						require.NoError(t, err)
						t.Cleanup(func() { _ = session.Close(t.Context()) })
						return session.Lease("x")
					}
					first, err := session("10.0.0.1:7000", true).TryAcquire(t.Context())
					require.NoError(t, err)
					for owner, inherit := range map[string]bool{"10.0.0.1:7000": false,
						"10.0.0.2:7000": true, "10.0.0.1:70000": true} {
						_, err = session(owner, inherit).TryAcquire(t.Context())
						require.ErrorIs(t, err, coordination.ErrHeld, "%s, inherit %v", owner,
							inherit)
					}
					began := time.Now()
					second, err := session("10.0.0.1:7000", true).TryAcquire(t.Context())
					require.NoError(t, err)
					require.Equal(t, first.Token()+1, second.Token())
					require.Less(t, time.Since(began), time.Second)
					select {
					case <-first.Context().Done():
					case <-time.After(10 * time.Minute):
						t.Fatal("the one before does not learn of it")
					}
					require.NoError(t, second.Check())
					require.NoError(t, second.Release(t.Context()))
				})
			})
		}
	}
}

func TestInherit_NeedsAnOwner(t *testing.T) {
	require.ErrorContains(t, settings.Check(coordination.Config{Inherit: true}),
		"Inherit needs Owner")
	require.NoError(t, settings.Check(coordination.Config{Inherit: true, Owner: "10.0.0.1:7000"}))
}

// Two processes of one owner run at once, against the rule, and both want the lease all the time.
// The later one takes it once; then they exclude each other, and after its end the first one waits
// like any other.
func TestInherit_TwoLivingProcessesTakeTheLeaseOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		var tenures atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var sessions []*coordination.Session
		for range 2 {
			s, err := coordination.Open(store, coordination.Config{Owner: "10.0.0.1:7000",
				Inherit: true})
			require.NoError(t, err)
			sessions = append(sessions, s)
			all.Go(func() {
				for {
					g, err := s.Lease("x").Acquire(ctx)
					if err != nil {
						return
					}
					tenures.Add(1)
					select {
					case <-g.Context().Done():
					case <-ctx.Done():
					}
					_ = g.Release(context.Background())
				}
			})
			time.Sleep(5 * time.Second)
		}
		time.Sleep(10 * time.Minute)
		require.Equal(t, int64(2), tenures.Load())
		require.NoError(t, sessions[1].Close(t.Context()))
		time.Sleep(time.Minute)
		require.Equal(t, int64(3), tenures.Load())
		cancel()
		all.Wait()
		require.NoError(t, sessions[0].Close(context.Background()))
	})
}
