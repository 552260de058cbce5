package distributeddata_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

type (
	countersByName = crdt.PNCounterMap[string]
	tagsByName     = crdt.ORMultiMap[string, string]
	setsByName     = crdt.ORMap[string, items]
	nestedByName   = crdt.ORMap[string, countersByName]
)

var (
	lenCounters = distributeddata.NewKey("len-counters", countersByName{})
	lenTags     = distributeddata.NewKey("len-tags", tagsByName{})
	lenSets     = distributeddata.NewKey("len-sets", setsByName{})
	lenNested   = distributeddata.NewKey("len-nested", nestedByName{})
	lenSharded  = distributeddata.NewShardedMap("len-sharded", 4, crdt.ORMap[string, items]{})
)

// putKey gives every map the key.
func putKey(t *testing.T, dd *distributeddata.Replicator, key string) {
	t.Helper()
	require.NoError(t, distributeddata.Atomically(context.Background(), dd,
		func(tx *distributeddata.Tx) error {
			lenCounters.In(tx).Add(tx.Writer, key, 1)
			lenTags.In(tx).Add(tx.Writer, key, "x")
			lenTags.In(tx).Add(tx.Writer, key, "y")
			add := func(s *items) { s.Add(tx.Writer, "x", "y") }
			lenSets.In(tx).Update(tx.Writer, key, add)
			lenNested.In(tx).Update(tx.Writer, key, func(m *countersByName) {
				m.Add(tx.Writer, "a", 1)
				m.Add(tx.Writer, "b", 1)
			})
			lenSharded.UpdateIn(tx, key, add)
			return nil
		}, distributeddata.All))
}

// lens returns what Len says of each map, beside the number of keys that it yields.
func lens(t *testing.T, dd *distributeddata.Replicator) (out []string) {
	t.Helper()
	ctx := context.Background()
	counters, err := lenCounters.Get(ctx, dd)
	require.NoError(t, err)
	tags, err := lenTags.Get(ctx, dd)
	require.NoError(t, err)
	sets, err := lenSets.Get(ctx, dd)
	require.NoError(t, err)
	nested, err := lenNested.Get(ctx, dd)
	require.NoError(t, err)
	sharded, err := lenSharded.Of(dd.Snapshot())
	require.NoError(t, err)
	inner, within := 0, 0
	for _, m := range nested.All() {
		inner, within = inner+m.Len(), within+yielded(m.Keys())
	}
	count := func(name string, length, keys int) {
		out = append(out, fmt.Sprintf("%s: Len %d, All yields %d", name, length, keys))
	}
	count("PNCounterMap", counters.Len(), yielded(counters.Keys()))
	count("ORMultiMap", tags.Len(), yielded(tags.Keys()))
	count("ORMap", sets.Len(), yielded(sets.Keys()))
	count("ORMap of maps", nested.Len(), yielded(nested.Keys()))
	count("maps within", inner, within)
	count("ShardedMap", sharded.Len(), len(maps.Collect(sharded.All())))
	return out
}

func yielded(keys iter.Seq[string]) int { return len(slices.Collect(keys)) }

func lensOf(n int) (out []string) {
	for _, name := range []string{"PNCounterMap", "ORMultiMap", "ORMap", "ORMap of maps"} {
		out = append(out, fmt.Sprintf("%s: Len %d, All yields %d", name, n, n))
	}
	return append(out, fmt.Sprintf("maps within: Len %d, All yields %d", 2*n, 2*n),
		fmt.Sprintf("ShardedMap: Len %d, All yields %d", n, n))
}

// Len of a map counts its keys also after the map was read from a disk, or was received as a
// whole, and was changed afterwards.
func TestMaps_LenAfterARestartAndAWholeState(t *testing.T) {
	cfg := distributeddata.Config{Durable: []string{"*"}, MinMembers: 3}
	run(t, 3, cfg, func(c *cluster) {
		for _, key := range []string{"a", "b"} {
			putKey(t, c.at(0), key)
		}
		c.restart()
		for _, m := range c.Live() {
			require.Equal(t, lensOf(2), lens(t, c.dd[m]), "after a restart of %v", m)
		}
		next := c.Join() // the logs begin behind the restart, so it gets a whole state
		c.ready(next)
		require.Equal(t, lensOf(2), lens(t, c.dd[next]), "after a whole state")
		putKey(t, c.dd[next], "c")
		time.Sleep(time.Second)
		for _, m := range c.Live() {
			require.Equal(t, lensOf(3), lens(t, c.dd[m]), "after another key at %v", m)
		}
	})
}
