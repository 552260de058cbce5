package disktest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/simnet"
)

var cycles = flag.Int("cycles", 15_000, "elements that are added and removed again on each store")

// stock contains the elements that live and those that come and go: an element of a map is a row.
var stock = distributeddata.NewKey("stock", crdt.LWWMap[string, string]{})

// turn is the number of elements that come with one update, and go with the next.
const turn = 500

// After many elements have come and gone, and the store was closed, the files take at most twice
// the space of the live elements when freshly written.
func TestSpace_IsThatOfWhatLives(t *testing.T) {
	each(t, func(t *testing.T, k kind, random *rand.Rand) {
		living := max(10_000, *cycles/10) // of 1 kB
		fresh, used := newDir(t), newDir(t)
		runAlone(t, k, fresh, func(ctx context.Context, dd *distributeddata.Replicator) {
			fillStock(ctx, t, dd, living, random)
		})
		runAlone(t, k, used, func(ctx context.Context, dd *distributeddata.Replicator) {
			fillStock(ctx, t, dd, living, random)
			peak := int64(0)
			for n := 0; n < *cycles; n += turn {
				turnStock(ctx, t, dd, n, random)
				if n%(turn*20) == 0 {
					peak = max(peak, taken(t, used))
				}
			}
			turnStock(ctx, t, dd, -1, random)
			t.Logf("while it was open at most %d MB, and %d MB at the end", peak>>20,
				taken(t, used)>>20)
		})
		least, most := taken(t, fresh), taken(t, used)
		t.Logf("%d cycles over %d elements: %d MB, freshly written %d MB", *cycles, living,
			most>>20, least>>20)
		require.LessOrEqual(t, most, 2*least)
	})
}

// fillStock sets the elements that stay.
func fillStock(ctx context.Context, t *testing.T, dd *distributeddata.Replicator, living int,
	random *rand.Rand) {
	t.Helper()
	for n := 0; n < living; n += turn {
		_, err := stock.Update(ctx, dd, func(w *crdt.Writer, v *crdt.LWWMap[string, string]) error {
			for i := range turn {
				v.Set(w, fmt.Sprint("living ", n+i), noise(random))
			}
			return nil
		}, distributeddata.Local)
		require.NoError(t, err)
	}
}

// turnStock removes the elements that come before the n-th, and adds as many from there; there are
// none for n < 0.
func turnStock(ctx context.Context, t *testing.T, dd *distributeddata.Replicator, n int,
	random *rand.Rand) {
	t.Helper()
	_, err := stock.Update(ctx, dd, func(w *crdt.Writer, v *crdt.LWWMap[string, string]) error {
		for i := range turn {
			v.Remove(w, fmt.Sprint("passing ", i, " of ", n/turn-1))
			if n >= 0 {
				v.Set(w, fmt.Sprint("passing ", i, " of ", n/turn), noise(random))
			} else {
				v.Remove(w, fmt.Sprint("passing ", i, " of ", (*cycles-1)/turn))
			}
		}
		return nil
	}, distributeddata.Local)
	require.NoError(t, err)
}

// noise returns 1 kB that does not compress.
func noise(random *rand.Rand) string {
	b := make([]byte, 1000)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return string(b)
}

// runAlone runs a cluster of one member until work returns, and closes the member and its store.
func runAlone(t *testing.T, k kind, dir string, work func(ctx context.Context,
	dd *distributeddata.Replicator)) {
	t.Helper()
	s := mustOpen(t, k, dir)
	var dd *distributeddata.Replicator
	c := simnet.NewCluster(simnet.Config{Members: 1, Setup: func(m *simnet.Member) {
		var err error
		dd, err = distributeddata.New(m.System, distributeddata.Config{
			Member: "alone", MinMembers: 1, Durable: []string{"*"}, Store: s,
			MaxBytes: 1_000_000_000,
		})
		require.NoError(t, err)
	}})
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	require.NoError(t, dd.Ready(ctx))
	work(ctx, dd)
	require.NoError(t, dd.Close(ctx))
	require.NoError(t, s.Close())
}
