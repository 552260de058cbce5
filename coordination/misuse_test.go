package coordination_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/testkit"
)

// Some of these calls hung, others were nil pointer dereferences.
func TestMisuse_ZeroValuesAndNilAreInvalid(t *testing.T) {
	ctx := t.Context()
	for name, s := range map[string]*coordination.Session{"zero": {}, "nil": nil} {
		require.ErrorIs(t, s.Close(ctx), coordination.ErrInvalid, name)
		_, err := s.Observe("another")
		require.ErrorIs(t, err, coordination.ErrInvalid, name)
		require.Empty(t, s.Leases(), name)
		_, err = s.Lease("a").TryAcquire(ctx)
		require.ErrorContains(t, err, `lease "a": the session is nil, or Open has not made it`, name)
	}
	for name, l := range map[string]*coordination.Lease{"zero": {}, "nil": nil} {
		for call, f := range map[string]func() error{
			"Acquire": func() error { _, err := l.Acquire(ctx); return err },
			"Do": func() error {
				return l.Do(ctx, func(context.Context, *coordination.Grant) error { return nil })
			},
			"Do nothing":   func() error { return l.Do(ctx, nil) },
			"Holder":       func() error { _, err := l.Holder(ctx); return err },
			"Renewed":      func() error { _, err := l.Renewed(ctx); return err },
			"ForceRelease": func() error { return l.ForceRelease(ctx, 1) },
			"Holders": func() (last error) {
				for _, err := range l.Holders(ctx) {
					last = err
				}
				return last
			},
		} {
			require.ErrorIs(t, f(), coordination.ErrInvalid, "%s: %s", name, call)
		}
		require.False(t, l.Forget(), name)
		l.Observe()()
	}
	var d coordination.Document
	_, _, err := d.Load(ctx)
	require.ErrorIs(t, err, coordination.ErrInvalid)
	_, _, err = d.Swap(ctx, "", nil)
	require.ErrorIs(t, err, coordination.ErrInvalid)
}

// Actors of a nil lease report that they cannot work. A nil PID, to which nothing can be reported,
// panics in the call and not in a goroutine that nobody can recover.
func TestMisuse_ActorsOfANilLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := testkit.NewSystem(t)
		p := testkit.NewProbe(t, system)
		var l *coordination.Lease
		defer l.AcquireTo(system, p.PID())()
		require.ErrorIs(t, testkit.Expect[*coordination.AcquireResult](p).Err,
			coordination.ErrInvalid)

		stops := testkit.Log{Message: "lease-gated actor stops", Times: 1}
		testkit.ExpectLog(t, system, stops, func() {
			system.Root.Spawn(coordination.Gated(l, 1, nil))
		})

		require.Panics(t, func() { l.AcquireTo(system, nil) })
	})
}
