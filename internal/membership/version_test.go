package membership

import (
	"slices"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/cluster"
	"github.com/stretchr/testify/require"
)

func TestVersions_AreOrderedAsSemanticVersioningSays(t *testing.T) {
	ordered := []string{"", "0", "0.9.9", "1.0.0-alpha", "1.0.0-alpha.1",
		"1.0.0-alpha.beta", "1.0.0-beta",
		"1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2", "1.10",
		"2026.11.25.3",
		"18446744073709551615"}
	for i, a := range ordered {
		if a != "" {
			require.NoError(t, CheckVersion(a), a)
			require.NoError(t, CheckVersion("v"+a), a)
		}
		for j, b := range ordered {
			require.Equal(t, sign(i-j), CompareVersions(a, b), "%q and %q", a, b)
		}
	}
	for _, same := range [][2]string{{"1.2", "v1.2.0.0"}, {"07", "7"}, {"1-rc.1", "1.0-rc.01"}} {
		require.Zero(t, CompareVersions(same[0], same[1]), "%v", same)
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

func TestVersions_OthersAreRefused(t *testing.T) {
	for _, v := range []string{"", "v", "one", "1.", ".1", "1..2", "+1", "1.-1", "1.0+build",
		"1.0-", "1.0-a..b",
		"1.0-rc_1", "1.0-rc-", "1.0-é", "1 .0", "18446744073709551616", "1.0-" +
			strings.Repeat("a", 40)} {
		require.ErrorContains(t, CheckVersion(v), "application version", v)
	}
}

// A peer's kinds are input: a version that is none is ignored, and of several the newest counts.
func TestVersions_OfPeersAreChecked(t *testing.T) {
	version := func(kinds ...string) string {
		return copyMember(&cluster.Member{Kinds: kinds}).AppVersion
	}
	require.Equal(t, "1.10", version("version.1.9", "role.a", "version.1.10", "version.x",
		"version."))
	require.Empty(t, version("version.x", "version", "versions.1"))
}

func FuzzVersions(f *testing.F) {
	for _, v := range []string{"1.2.3", "v1-rc.1", "1..2", "-", "1.0-a-b.07"} {
		f.Add(v, "1.0")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if CheckVersion(a) != nil || CheckVersion(b) != nil {
			return
		}
		vs := []string{a, b, "1.0"}
		slices.SortFunc(vs, CompareVersions)
		for i := range vs[1:] {
			if CompareVersions(vs[i], vs[i+1]) > 0 ||
				CompareVersions(vs[i], vs[i+1]) != -CompareVersions(vs[i+1], vs[i]) {
				t.Fatalf("no order: %q", vs)
			}
		}
	})
}
