package distributeddata

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A change wakes the loops over its key and over prefixes of it, and no others.
func TestLoops_AChangeWakesThoseOfItsKeyOnly(t *testing.T) {
	var all loops
	woken := map[string]*loop{
		"a": all.add("a", true), "ab": all.add("ab", true), "a*": all.add("a", false),
		"b*": all.add("b", false), "*": all.add("", false),
	}
	wakes := func() (names []string) {
		for name, l := range woken {
			if len(l.wake) > 0 {
				names = append(names, name)
			}
			l.rearm()
		}
		return names
	}
	all.changed([]string{"ab", "ab"})
	require.ElementsMatch(t, []string{"ab", "a*", "*"}, wakes())
	all.changed([]string{"quiet"})
	require.ElementsMatch(t, []string{"*"}, wakes())
	all.rouse()
	require.Len(t, wakes(), len(woken))
	for _, l := range woken {
		all.remove(l)
	}
	require.Empty(t, all.byKey)
	require.Empty(t, all.byPrefix)
	require.Empty(t, all.lengths)
	require.Zero(t, all.running.Load())
	all.changed([]string{"ab"})
	require.Empty(t, wakes())
}
