package main

import (
	"encoding/json"
	"math"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/cockpit/api"
)

func TestColumns_OfATerminal(t *testing.T) {
	for text, want := range map[string]int{"": 0, "milk": 4, "Käse": 4, "Ka\u0308se": 4, "茶": 2,
		"ﾁｬ": 2, "ＡＢ": 4, "🍞": 2, "…": 1, "한국": 4} {
		require.Equal(t, want, columns(text), "%q", text)
	}
}

func TestCut_KeepsBothEndsAndWholeLetters(t *testing.T) {
	require.Equal(t, "milk", cut("milk", 4))
	require.Equal(t, "ab…xyz", cut("abcdefghijklmnopqrstuvwxyz", 6))
	require.Equal(t, "茶…茶", cut("茶茶茶茶", 6))
	require.Equal(t, "茶…茶", cut("茶茶茶茶", 5))
	require.Equal(t, "…e\u0301", cut("e\u0301e\u0301e\u0301", 2), "an accent stays with its letter")
	for most := 1; most < 30; most++ {
		for _, text := range []string{strings.Repeat("茶", 40), strings.Repeat("e\u0301", 40),
			strings.Repeat("a🍞", 20)} {
			require.LessOrEqual(t, columns(cut(text, most)), most)
		}
	}
}

func TestWrap_BreaksOnlyWhatDoesNotFit(t *testing.T) {
	var b strings.Builder
	word := strings.Repeat("0123456789", 20)
	wrap(&b, "! ", "  ", "short "+word+" end")
	fits(t, b.String())
	require.Equal(t, "short"+word+"end", strings.NewReplacer("!", "", " ", "", "\n", "").Replace(
		b.String()), "nothing is lost")
	require.True(t, strings.HasPrefix(b.String(), "! short\n  0123"), b.String())
	b.Reset()
	wrap(&b, "", "", strings.Repeat("茶", 100))
	fits(t, b.String())
	b.Reset()
	wrap(&b, "", "  ", strings.Repeat("x", 80)+" y")
	require.Equal(t, strings.Repeat("x", 80)+"\n  y\n", b.String())
}

// TestTables_FitWithLongNames serves each table with names and figures that are as long as they can
// be in practice.
func TestTables_FitWithLongNames(t *testing.T) {
	for name, long := range map[string]string{
		"latin": strings.Repeat("shop-7d9f8b6c54-x2x9q.shop.svc.cluster.local", 6) + ":8090",
		"wide":  strings.Repeat("茶", 100), "accents": strings.Repeat("e\u0301", 200),
	} {
		t.Run(name, func(t *testing.T) {
			hours := time.Now().Add(-1234 * time.Hour)
			later := time.Now().Add(1234 * time.Hour)
			members := []api.Member{
				{Address: long, Self: true, Rank: 1000, Roles: []string{long, "b"}},
				{Address: "b" + long, Rank: 1001, Roles: []string{}}}
			answers := map[string]any{
				"overview": api.Overview{
					Cluster: api.Cluster{Name: long, Self: long, Members: members,
						Lost: []string{"c" + long}},
					Peers: []api.Peer{{Self: "b" + long, Members: []string{long}},
						{Self: "c" + long, Members: make([]string, 1000)}},
					Replicators: []api.Replicator{{Name: long, Members: 1000, Counted: 1000,
						Keys: 1_000_000, Lag: []api.Lag{{Member: long, Updates: 1_000_000}},
						LogBytes: 999_000_000, SentBytes: 999_000_000_000}},
					Sessions: []api.Session{{Name: long, Held: 100_000, NearExpiry: 100_000,
						Waiting: 100_000, Lost: map[string]uint64{"x": 1_000_000},
						Failures: 1_000_000}},
					Singletons: []api.Singleton{{Name: long, State: "elsewhere", Host: long,
						Token: 1_000_000_000, Since: &hours}},
					Shards: []api.Shards{
						{Type: long, Homes: []api.Home{{Address: long, Shards: 100_000}}}},
					Problems: []api.Problem{{Severity: "warn", What: long, Do: long}},
				},
				"keys": api.Page[api.Key]{
					Items: []api.Key{{Key: long, Type: "ORMap[map[string]" + long + "]",
						Atoms: 1_000_000, Bytes: 999_000_000, Changed: &hours}}},
				"leases": api.Page[api.Lease]{
					Items: []api.Lease{{Name: long, State: "near expiry", Owner: long,
						Token: math.MaxUint64, Expires: &later, Waiting: 1_000_000}}},
				"lease": api.Holder{Name: long, Held: true, Owner: long, Token: math.MaxUint64,
					RemainingMS: 1 << 40},
				"shards": api.Page[api.Shard]{
					Items: []api.Shard{{Shard: 99_999, State: "acquiring the lease", Home: long,
						Token: 1_000_000_000, Entities: 1_000_000, Waiting: 1_000_000,
						Since: &hours, Requested: "b" + long}}},
			}
			at := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = json.NewEncoder(w).Encode(answers[path.Base(r.URL.Path)])
			}))
			for _, args := range [][]string{{"status"}, {"keys"}, {"leases"},
				{"leases", "-session", "x", long}, {"shards"}} {
				status, out, errs := ctlRun(t, at, args...)
				require.Equal(t, exitOK, status, "%v: %s%s", args, out, errs)
				require.Greater(t, strings.Count(out, "\n"), 1)
				require.Contains(t, out, "…", args)
				fits(t, out)
			}
		})
	}
}
