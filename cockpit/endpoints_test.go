package cockpit_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
)

func TestOverview_ShowsEveryComponent(t *testing.T) {
	run(t, cockpit.Config{Name: "one"}, func(w *world) {
		w.add("cart", "milk")
		time.Sleep(5 * time.Second)
		o := get[api.Overview](w, "overview")
		require.Equal(t, api.Version, o.Version)
		require.Equal(t, "one", o.Node.Name)
		require.Positive(t, o.Node.HeapBytes)
		require.Equal(t, w.Member(0).Address, o.Cluster.Self)
		require.Len(t, o.Cluster.Members, 3)
		require.True(t, o.Cluster.GateOpen)
		var ranks []int
		versions := map[string]string{}
		for _, m := range o.Cluster.Members {
			ranks = append(ranks, m.Rank)
			versions[m.ID] = m.AppVersion
		}
		require.Equal(t, map[string]string{w.Member(0).ID: "1.2.0", w.Member(1).ID: "1.1.0",
			w.Member(2).ID: ""}, versions)
		slices.Sort(ranks)
		require.Equal(t, []int{1, 2, 3}, ranks)

		require.Len(t, o.Replicators, 1)
		r := o.Replicators[0]
		require.Equal(t, "shop", r.Name)
		require.True(t, r.Ready)
		require.Equal(t, []int{3, 3}, []int{r.Members, r.Counted})
		require.Len(t, r.Lag, 2)
		require.Positive(t, r.SentBytes)

		require.Len(t, o.Sessions, 1)
		require.Equal(t, w.Member(0).ID, o.Sessions[0].Owner)
		require.Len(t, o.Singletons, 1)
		require.Contains(t, []string{"here", "elsewhere"}, o.Singletons[0].State)
		require.Positive(t, o.Singletons[0].Token)
		require.NotNil(t, o.Singletons[0].Since)
		require.Len(t, o.Shards, 1)
		require.Equal(t, 16, o.Shards[0].Shards)
		require.Len(t, o.Shards[0].Map, 16)
		sum := 0
		for _, home := range o.Shards[0].Homes {
			sum += home.Shards
			require.Contains(t, home.Address, ":", "must be an address, not an id")
		}
		require.Equal(t, 16, sum)
		require.Empty(t, o.Problems)
	})
}

func TestSections_HaveAnEndpointEach(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		o := get[api.Overview](w, "overview")
		require.Equal(t, o.Cluster.Self, get[api.Cluster](w, "cluster").Self)
		require.Equal(t, o.Replicators[0].Name, get[[]api.Replicator](w, "replicators")[0].Name)
		require.Equal(t, o.Singletons[0].Host, get[[]api.Singleton](w, "singletons")[0].Host)
		require.Equal(t, o.Shards[0].Type, get[[]api.Shards](w, "types")[0].Type)
		require.Len(t, get[[]api.Session](w, "sessions"), 1)
		require.False(t, get[api.Health](w, "health").Known)
		require.Empty(t, get[[]api.Peer](w, "peers"))
		require.Len(t, get[[]api.Times](w, "times"), 4)
		require.Empty(t, get[[]api.Change](w, "changes"))
		require.Empty(t, get[[]api.Problem](w, "problems"))
		require.Positive(t, get[api.Node](w, "node").Goroutines)
	})
}

func TestKeys_PagesCoverAllEntriesOnce(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		w.fill(230)
		w.add("other", "x", "y")
		var all []string
		after, pages := "", 0
		for {
			page := get[api.Page[api.Key]](w, "keys?replicator=shop&prefix=k/&limit=100&after="+
				after)
			for _, k := range page.Items {
				require.Equal(t, "ORSet[string]", k.Type)
				require.Positive(t, k.Bytes)
				require.Equal(t, 1, k.Atoms)
				all = append(all, k.Key)
			}
			pages++
			if after = page.Next; after == "" {
				break
			}
		}
		require.Equal(t, 3, pages)
		require.Len(t, all, 230)
		require.True(t, slices.IsSorted(all))
		require.Len(t, slices.Compact(all), 230)
		require.Len(t, get[api.Page[api.Key]](w, "keys?prefix=other").Items, 1)
		require.Empty(t, get[api.Page[api.Key]](w, "keys?prefix=nothing").Items)
	})
}

func TestKeys_DeletedEntriesAreNotShown(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		w.fill(10)
		require.NoError(t, distributeddata.NewKey("k/000004", items{}).Delete(w.t.Context(),
			w.nodes[0].dd, distributeddata.Local))
		require.Len(t, get[api.Page[api.Key]](w, "keys?prefix=k/").Items, 9)
	})
}

func TestHide_NamesAreNowhere(t *testing.T) {
	cfg := cockpit.Config{Hide: []string{"k/*", "secret", "lease-*"}, HideOwners: true,
		Values: []cockpit.Values{cockpit.ValuesOf(distributeddata.NewPrefix("", items{}))}}
	run(t, cfg, func(w *world) {
		w.fill(5000)
		w.add("secret", "x")
		w.add("a", "x")
		w.add("z", "x")
		_, err := w.nodes[0].session.Lease("lease-1").TryAcquire(w.t.Context())
		require.NoError(t, err)
		_, err = w.nodes[0].session.Lease("shown").TryAcquire(w.t.Context())
		require.NoError(t, err)

		var names []string
		page := get[api.Page[api.Key]](w, "keys?limit=500")
		for _, k := range page.Items {
			names = append(names, k.Key)
		}
		require.Contains(t, names, "a")
		require.Contains(t, names, "z", "hidden names are skipped in one step")
		require.Empty(t, page.Next)
		get[api.Overview](w, "overview")
		w.add("k/000001", "again")
		w.add("a", "again")
		time.Sleep(time.Second)
		log := slogOf(w)
		log.Warn("something with the key", "key", "k/000001", "owner", "me")
		for _, path := range []string{"keys?limit=500", "overview", "leases?limit=500",
			"events", "changes"} {
			body := w.do(request(http.MethodGet, "/api/v1/"+path, "")).Body.String()
			require.NotContains(t, body, "k/0", path)
			require.NotContains(t, body, "secret", path)
			require.NotContains(t, body, "lease-1", path)
			require.NotContains(t, body, `"owner":"`+w.Member(0).ID, path)
		}
		require.Contains(t, w.do(request(http.MethodGet, "/api/v1/leases?limit=500",
			"")).Body.String(), "shown")
		require.Contains(t, w.do(request(http.MethodGet, "/api/v1/events", "")).Body.String(),
			"something with the key")
		for _, path := range []string{"value?key=secret", "value?key=k/000001",
			"lease?name=lease-1"} {
			status, _ := w.refused(request(http.MethodGet, "/api/v1/"+path, ""))
			require.Equal(t, http.StatusNotFound, status, path)
		}
		require.Equal(t, "[again x]", strings.NewReplacer("{", "[", "}", "]").Replace(
			get[api.Value](w, "value?key=a").Text))
	})
}

func TestValue_IsShownOnlyWhereItIsAllowed(t *testing.T) {
	run(t, cockpit.Config{Values: []cockpit.Values{
		cockpit.ValuesOf(distributeddata.NewPrefix("cart/", items{}))}}, func(w *world) {
		w.add("cart/1", "milk")
		w.add("order/1", "milk")
		var many []string
		for i := range 300 {
			many = append(many, fmt.Sprintf("%0300d", i))
		}
		w.add("cart/large", many...)
		require.Contains(t, get[api.Value](w, "value?replicator=shop&key=cart/1").Text, "milk")
		page := get[api.Page[api.Key]](w, "keys")
		for _, k := range page.Items {
			require.Equal(t, k.Key == "cart/1", k.Value, k.Key)
		}
		for path, want := range map[string]int{
			"value?key=order/1": http.StatusForbidden, "value?key=cart/none": http.StatusNotFound,
			"value?key=cart/large":             http.StatusRequestEntityTooLarge,
			"value?replicator=none&key=cart/1": http.StatusNotFound,
		} {
			status, _ := w.refused(request(http.MethodGet, "/api/v1/"+path, ""))
			require.Equal(t, want, status, path)
		}
	})
}

func TestLeases_PagesAndHolders(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		for i := range 30 {
			_, err := w.nodes[0].session.Lease(fmt.Sprintf("l%02d", i)).TryAcquire(w.t.Context())
			require.NoError(t, err)
		}
		known := get[[]api.Session](w, "sessions")[0]
		require.Len(t, known.Leases, 12)
		require.GreaterOrEqual(t, known.Known, 30)
		var names []string
		for after := ""; ; {
			page := get[api.Page[api.Lease]](w, "leases?limit=7&after="+after)
			for _, l := range page.Items {
				if strings.HasPrefix(l.Name, "l") && len(l.Name) == 3 {
					require.Equal(t, "held", l.State)
					require.Equal(t, w.Member(0).ID, l.Owner)
					require.NotNil(t, l.Expires)
					require.True(t, l.Expires.After(time.Now()), "%v", l.Expires)
					names = append(names, l.Name)
				}
			}
			if after = page.Next; after == "" {
				break
			}
		}
		require.Len(t, names, 30)
		require.True(t, slices.IsSorted(names))
		h := get[api.Holder](w, "lease?name=l07")
		require.True(t, h.Held)
		require.Equal(t, uint64(1), h.Token)
		require.False(t, get[api.Holder](w, "lease?name=never").Held)
		for _, l := range get[api.Page[api.Lease]](w, "leases?limit=500").Items {
			require.NotEqual(t, "never", l.Name, "the session forgets names that clients asked for")
		}
	})
}

func TestShards_ComeInPages(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		first := get[api.Page[api.Shard]](w, "shards?type=cart&limit=10")
		require.Len(t, first.Items, 10)
		rest := get[api.Page[api.Shard]](w, "shards?type=cart&limit=10&after="+first.Next)
		require.Len(t, rest.Items, 6)
		require.Empty(t, rest.Next)
		require.Equal(t, 15, rest.Items[5].Shard)
		require.NotEmpty(t, rest.Items[5].Home)
	})
}

func TestProblems_SayWhatToDoWhenAMemberIsGone(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		require.Empty(t, get[api.Overview](w, "overview").Problems)
		lost := w.Member(2)
		w.Crash(lost)
		w.Expel(lost)
		time.Sleep(2 * time.Second)
		o := get[api.Overview](w, "overview")
		require.Equal(t, []string{lost.Address}, o.Cluster.Lost)
		require.NotEmpty(t, o.Problems)
		require.Equal(t, "bad", o.Problems[0].Severity)
		require.Contains(t, o.Problems[0].What, lost.Address)
		for _, p := range o.Problems {
			require.NotEmpty(t, p.Do, p.What)
		}
		require.True(t, o.Cluster.Fault.Ongoing)
		events := get[api.Page[api.Event]](w, "events").Items
		require.True(t, slices.ContainsFunc(events, func(e api.Event) bool {
			return e.Text == lost.Address+" is missing"
		}), "%v", events)
		again := get[api.Page[api.Event]](w, fmt.Sprintf("events?after=%d",
			events[len(events)-1].Seq))
		require.Empty(t, again.Items)
	})
}

func TestAddresses_OfMembersThatAreGoneAreRemembered(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		get[api.Overview](w, "overview")
		between := w.nodes[0].sources()
		between.System = nil // as between two incarnations: no members are in view
		w.Show(between)
		o := get[api.Overview](w, "overview")
		require.Empty(t, o.Cluster.Members)
		for _, home := range o.Shards[0].Homes {
			require.Contains(t, home.Address, ":", "must be an address, not an id")
		}
		require.Contains(t, get[api.Page[api.Shard]](w, "shards").Items[0].Home, ":")
	})
}

func TestAddresses_OfMembersThatLeftEarlier(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		w.Show(w.nodes[1].sources())
		lost := w.Member(0) // runs the newest version, so it is the home of all shards
		w.Crash(lost)
		w.Expel(lost)
		time.Sleep(100 * time.Millisecond)
		o := get[api.Overview](w, "overview")
		require.Len(t, o.Cluster.Members, 2)
		require.Len(t, o.Shards[0].Homes, 1)
		require.Equal(t, lost.Address, o.Shards[0].Homes[0].Address)
	})
}

func TestPage_AsksNoOtherServer(t *testing.T) {
	run(t, cockpit.Config{}, func(w *world) {
		page := w.do(request(http.MethodGet, "/", ""))
		require.Equal(t, http.StatusOK, page.Code)
		require.Contains(t, page.Header().Get("Content-Type"), "text/html")
		require.Contains(t, page.Header().Get("Content-Security-Policy"), "default-src 'none'")
		require.NotContains(t, page.Header().Get("Content-Security-Policy"), "unsafe")
	})
}
