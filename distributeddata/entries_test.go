package distributeddata_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

func TestEntries_ListsNamesTypesAndSizesFromAName(t *testing.T) {
	run(t, 1, distributeddata.Config{}, func(c *cluster) {
		dd := c.dd[c.Member(0)]
		add := func(key string, n int) {
			_, err := distributeddata.NewKey(key, items{}).Update(c.t.Context(), dd,
				func(w *crdt.Writer, v *items) error {
					for i := range n {
						v.Add(w, strconv.Itoa(i))
					}
					return nil
				}, local)
			require.NoError(c.t, err)
		}
		for _, key := range []string{"b/1", "b/2", "c", "a"} {
			add(key, 2)
		}
		list := func(prefix, from string) (names []string) {
			for e := range dd.Snapshot().Entries(prefix, from) {
				require.Equal(c.t, "ORSet[string]", e.Type)
				require.Equal(c.t, 2, e.Atoms)
				require.Positive(c.t, e.Bytes)
				names = append(names, e.Key)
			}
			return names
		}
		require.Equal(c.t, []string{"a", "b/1", "b/2", "c"}, list("", ""))
		require.Equal(c.t, []string{"b/1", "b/2"}, list("b/", ""))
		require.Equal(c.t, []string{"b/2"}, list("b/", "b/1\x00"))
		require.Empty(c.t, list("b/", "c"))
		require.Equal(c.t, []string{"c"}, list("", "bz"))

		before := dd.Snapshot()
		add("large", 1000)
		require.Equal(c.t, []string{"large"}, slices.Collect(dd.Snapshot().Changed(before)))
		require.Empty(c.t, slices.Collect(before.Changed(before)))
		for e := range dd.Snapshot().Entries("large", "") {
			require.Equal(c.t, 1000, e.Atoms)
			const digits = 10 + 2*90 + 3*900
			require.Greater(c.t, e.Bytes, digits)
			require.Less(c.t, e.Bytes, digits+4*e.Atoms, "all elements, and little more")
		}
		require.NoError(c.t, distributeddata.NewKey("large", items{}).Delete(c.t.Context(), dd,
			local))
		for e := range dd.Snapshot().Entries("large", "") {
			require.True(c.t, e.Gone)
		}
		require.Empty(c.t, slices.Collect(distributeddata.Snapshot{}.Entries("", "")))
		require.Empty(c.t, slices.Collect(distributeddata.Snapshot{}.Changed(before)))
	})
}
