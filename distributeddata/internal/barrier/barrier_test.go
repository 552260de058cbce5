package barrier

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var epoch = time.Unix(1_700_000_000, 0)

// What reveals a state leaves when the disk holds it, in order, and not before [R46].
func TestRelease_WhenTheDiskHasTheMoment(t *testing.T) {
	var b Barrier[string]
	require.True(t, b.Has(b.Present(false)), "nothing has changed")
	first := b.Present(true)
	require.False(t, b.Has(first))
	b.Hold("push", first, 5, time.Time{})
	b.Form()
	require.Equal(t, first, b.Present(false))
	second := b.Present(true)
	b.Hold("ack", second, 5, time.Time{})
	require.Empty(t, b.Release())
	b.Save()
	require.Equal(t, []string{"push"}, b.Release())
	b.Form()
	b.Save()
	require.Equal(t, []string{"ack"}, b.Release())
	require.Empty(t, b.Outputs())
}

func TestLate_EachAtItsDeadline(t *testing.T) {
	var b Barrier[string]
	b.Hold("first", 1, 0, epoch.Add(2*time.Second))
	b.Hold("message", 1, 9, time.Time{})
	b.Hold("second", 1, 0, epoch.Add(time.Second))
	require.Equal(t, epoch.Add(time.Second), b.Until())
	require.Empty(t, b.Late(epoch))
	require.Equal(t, []string{"second"}, b.Late(epoch.Add(time.Second)))
	require.Equal(t, epoch.Add(2*time.Second), b.Until())
	require.Equal(t, []string{"first"}, b.Late(epoch.Add(time.Hour)))
	require.Zero(t, b.Until())
	require.Equal(t, []string{"message"}, b.Clear())
}

func TestHold_IsBounded(t *testing.T) {
	var b Barrier[int]
	for i := range 200 {
		b.Hold(i, 1, MaxBytes/100, time.Time{})
	}
	b.Hold(-1, 1, 0, time.Time{})
	require.Len(t, b.Outputs(), 101)
	b.Clear()
	b.Hold(1, 1, MaxBytes, time.Time{})
	require.Len(t, b.Outputs(), 1, "there is room again")
}

// TestBarrier_AgainstDefinition plays a disk: every output leaves once, not before its moment
// unless it is late, and in order.
func TestBarrier_AgainstDefinition(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		var b Barrier[int]
		now := epoch
		type out struct {
			m     Moment
			until time.Time
		}
		waits := map[int]out{}
		saved, formed, newest, last := Moment(0), Moment(0), Moment(0), -1
		for i := range 300 {
			now = now.Add(time.Duration(r.IntN(200)) * time.Millisecond)
			switch r.IntN(4) {
			case 0:
				b.Form()
				formed++
			case 1:
				if saved < formed {
					b.Save()
					saved++
				}
			default:
				o := out{m: max(newest, b.Present(r.IntN(2) == 0))}
				newest = o.m
				if r.IntN(2) == 0 {
					o.until = now.Add(time.Duration(r.IntN(3000)+1) * time.Millisecond)
				}
				if b.Has(o.m) {
					require.LessOrEqual(t, o.m, saved)
					continue
				}
				waits[i] = o
				b.Hold(i, o.m, r.IntN(10), o.until)
			}
			for _, x := range b.Release() {
				require.LessOrEqual(t, waits[x].m, saved, "seed %d", seed)
				require.Greater(t, x, last, "seed %d", seed)
				last = x
				delete(waits, x)
			}
			for _, x := range b.Late(now) {
				require.False(t, now.Before(waits[x].until), "seed %d", seed)
				require.False(t, waits[x].until.IsZero())
				delete(waits, x)
			}
			for x, o := range waits {
				require.Greater(t, o.m, saved, "seed %d: output %d", seed, x)
				require.True(t, o.until.IsZero() || now.Before(o.until), "seed %d", seed)
			}
		}
		require.Len(t, b.Clear(), len(waits))
	}
}
