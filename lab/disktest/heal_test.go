package disktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/distributeddata/inspect"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/simnet"
)

// healTime bounds how long a member whose files were damaged takes from its start until it holds
// everything again.
const healTime = 10 * time.Second

// A member of three is killed, its files are damaged or lost, and the others continue. It restarts
// with the damaged directory, or with an empty one if the store rejects that. Within healTime it is
// ready and holds everything that was written, and in the end its files are sound.
func TestHeal_FromPeers(t *testing.T) {
	each(t, func(t *testing.T, k kind, random *rand.Rand) {
		h := newHealing(t, k)
		h.write(0, 2_000)
		found := map[string]int{}
		var longest time.Duration
		for round := range max(len(harms), *damages/10) {
			i, harm := random.IntN(replicas), harms[round%len(harms)]
			h.kill(i)
			h.write((i+1)%replicas, 20)
			harm.do(t, h.dirs[i], random)
			result, took := h.restart(i)
			longest = max(longest, took)
			found[harm.name+": "+result]++
		}
		t.Logf("whole again within %v: %v", longest.Round(time.Millisecond), found)
		h.end()
	})
}

// harm is what happens to the directory of a stopped member.
type harm struct {
	name string
	do   func(t *testing.T, dir string, random *rand.Rand)
}

var harms = []harm{
	{"ten damages", func(t *testing.T, dir string, random *rand.Rand) {
		t.Helper()
		for range 10 {
			t.Log(damage(t, dir, random))
		}
	}},
	{"half of the largest file", func(t *testing.T, dir string, _ *rand.Rand) {
		t.Helper()
		path := filepath.Join(dir, slices.MaxFunc(names(t, dir), func(a, b string) int {
			return int(used(t, dir, a) - used(t, dir, b))
		}))
		require.NoError(t, os.Truncate(path, used(t, dir, filepath.Base(path))/2))
	}},
	{"one damage", func(t *testing.T, dir string, random *rand.Rand) {
		t.Helper()
		t.Log(damage(t, dir, random))
	}},
	{"all files lost", func(t *testing.T, dir string, _ *rand.Rand) {
		t.Helper()
		require.NoError(t, os.RemoveAll(dir))
	}},
}

// used returns the size of a file without the zeros at its end.
func used(t *testing.T, dir, name string) int64 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
	require.NoError(t, err)
	n := len(raw)
	for n > 0 && raw[n-1] == 0 {
		n--
	}
	return int64(n)
}

// healing is a cluster in real time whose members are killed and restarted.
type healing struct {
	t       *testing.T
	kind    kind
	sim     *simnet.Cluster
	members [replicas]*simnet.Member
	dirs    [replicas]string
	stores  [replicas]store.Store
	dd      map[*simnet.Member]*distributeddata.Replicator
	written int
}

func newHealing(t *testing.T, k kind) *healing {
	t.Helper()
	h := &healing{t: t, kind: k, dd: map[*simnet.Member]*distributeddata.Replicator{}}
	of := map[string]int{} // by address
	for i := range replicas {
		h.dirs[i] = newDir(t)
		h.stores[i] = mustOpen(t, k, h.dirs[i])
	}
	h.sim = simnet.NewCluster(simnet.Config{
		Options: simnet.Options{Seed: *seed, Latency: 5 * time.Millisecond}, Members: replicas,
		Setup: func(m *simnet.Member) {
			i, again := of[m.Address]
			if !again {
				i = len(of)
				of[m.Address] = i
			}
			dd, err := distributeddata.New(m.System, distributeddata.Config{
				Member: fmt.Sprint("member-", i), MinMembers: replicas, Durable: []string{"*"},
				Store:             h.stores[i],
				HeartbeatInterval: 200 * time.Millisecond,
			})
			require.NoError(t, err)
			h.members[i], h.dd[m] = m, dd
		},
	})
	t.Cleanup(h.sim.Close)
	h.within(time.Minute, func(ctx context.Context) {
		for i := range replicas {
			require.NoError(t, h.at(i).Ready(ctx))
		}
	})
	return h
}

func (h *healing) at(i int) *distributeddata.Replicator { return h.dd[h.members[i]] }

// within runs f with a context that is cancelled after d.
func (h *healing) within(d time.Duration, f func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(h.t.Context(), d)
	defer cancel()
	f(ctx)
}

// row returns the key of the n-th entry.
func row(n int) distributeddata.Key[crdt.LWWRegister[string]] {
	return distributeddata.NewKey(fmt.Sprint("entry ", n), crdt.LWWRegister[string]{})
}

// content returns the content of the n-th entry.
func content(n int) string { return fmt.Sprint(n, " ", n*n) }

// write writes more entries, which a majority then has on its disks.
func (h *healing) write(i, entries int) {
	h.t.Helper()
	h.within(time.Minute, func(ctx context.Context) {
		err := distributeddata.Atomically(ctx, h.at(i), func(tx *distributeddata.Tx) error {
			for n := h.written; n < h.written+entries; n++ {
				row(n).In(tx).Set(tx.Writer, content(n))
			}
			return nil
		}, distributeddata.Majority)
		require.NoError(h.t, err)
	})
	h.written += entries
}

// kill ends a member without an orderly stop. Its directory keeps the state of that moment.
func (h *healing) kill(i int) {
	h.t.Helper()
	h.sim.Crash(h.members[i])
	h.dirs[i] = copyDir(h.t, h.dirs[i])
	// Of a member that can no longer reach the others.
	h.within(100*time.Millisecond, func(ctx context.Context) { _ = h.at(i).Close(ctx) })
	_ = h.stores[i].Close()
}

// restart restarts a killed member. It returns what became of its directory, and how long the
// member took until it held everything.
func (h *healing) restart(i int) (result string, took time.Duration) {
	h.t.Helper()
	begin := time.Now()
	s, err := h.kind.open(h.dirs[i])
	if err != nil { // the operator moves it away
		require.True(h.t, errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrForeign) ||
			errors.Is(err, store.ErrWrongKey), err)
		result = "refused"
		h.dirs[i] = newDir(h.t)
		s = mustOpen(h.t, h.kind, h.dirs[i])
	}
	h.stores[i] = s
	h.sim.Restart(h.members[i])
	dd := h.at(i)
	h.within(healTime, func(ctx context.Context) {
		require.NoError(h.t, dd.Ready(ctx), result)
		for n := range h.written {
			v, err := row(n).Get(ctx, dd)
			require.NoError(h.t, err, "entry %d of %d, %s", n, h.written, result)
			got, _ := v.Value()
			require.Equal(h.t, content(n), got)
		}
		require.NoError(h.t, dd.Flush(ctx))
	})
	if holes := dd.Status().Durable.Holes; result == "" && holes > 0 {
		result = "found"
	} else if result == "" {
		result = "harmless, or empty"
	}
	return result, time.Since(begin)
}

// end closes all members, and requires that their files are sound.
func (h *healing) end() {
	h.t.Helper()
	h.within(time.Minute, func(ctx context.Context) {
		for i := range replicas {
			require.NoError(h.t, h.at(i).Close(ctx))
			require.NoError(h.t, h.stores[i].Close())
			s := mustOpen(h.t, h.kind, h.dirs[i])
			r, err := inspect.Verify(ctx, s)
			require.NoError(h.t, err)
			require.True(h.t, r.Sound(), "member %d", i)
			require.Len(h.t, r.Entries, h.written)
			require.NoError(h.t, s.Close())
		}
	})
}
