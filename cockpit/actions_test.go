package cockpit_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/concord-go/concord/cockpit"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/sharding"
)

// everybody authorizes all requests.
func everybody(*http.Request, cockpit.Permission) error { return nil }

// action returns the request of an action, as the page sends it.
func action(path, body string) *http.Request {
	r := request(http.MethodPost, "/api/v1/actions/"+path, body)
	r.Header.Set("X-Concord-Action", "1")
	r.Header.Set("Content-Type", "application/json")
	return r
}

// shard returns a shard as the cockpit shows it.
func (w *world) shard(n int) api.Shard {
	return get[api.Page[api.Shard]](w, fmt.Sprintf("shards?type=cart&after=%d&limit=1", n)).Items[0]
}

func TestMove_AShardMovesAndStays(t *testing.T) {
	run(t, cockpit.Config{Actions: true, Authorize: everybody}, func(w *world) {
		typ := get[[]api.Shards](w, "types")[0]
		require.True(t, typ.Movable)
		require.Len(t, typ.Hosts, 3)
		before := w.shard(3)
		require.Equal(t, "shard-cart-3", before.Lease)
		require.NotNil(t, before.Since)
		to := typ.Hosts[0]
		if to == before.Home {
			to = typ.Hosts[1]
		}
		asked := time.Now()
		rec := w.do(action("move", fmt.Sprintf(`{"type":"cart","shard":3,"to":%q}`, to)))
		require.Equal(t, http.StatusOK, rec.Code, "%s", rec.Body)
		require.JSONEq(t, `{"version":1,"requested":true}`, rec.Body.String())
		time.Sleep(30 * time.Second)
		after := w.shard(3)
		require.Equal(t, to, after.Home)
		require.Equal(t, to, after.Requested)
		require.False(t, after.Since.Before(asked))
		require.Equal(t, 1, get[[]api.Shards](w, "types")[0].Requested)
		for _, p := range w.nodes {
			st := p.carts.Status().Shards[3]
			require.Equal(t, p.Address == to, st.State == sharding.Active, "%v at %s", st.State,
				p.Address)
		}
		h := get[api.Holder](w, "lease?name="+after.Lease)
		require.True(t, h.Held)
		require.Greater(t, h.Token, uint64(1), "a move is a new tenure")
		for _, p := range w.nodes {
			w.Show(p.sources())
			st := p.carts.Status().Shards[3]
			times := get[[]api.Times](w, "times")[2]
			require.Equal(t, "shards", times.Kind)
			last := times.Samples[len(times.Samples)-1]
			require.Equal(t, p.Address == to, last.MS == st.TakeOver.Milliseconds() &&
				last.At.Equal(st.Since), "%v at %s", last, p.Address)
		}
		w.Show(w.nodes[0].sources())
		require.Contains(t, w.do(request(http.MethodGet, "/api/v1/events", "")).Body.String(),
			"operator action: move shard type=cart shard=3 to="+to)

		require.Equal(t, http.StatusOK,
			w.do(action("move", `{"type":"cart","shard":3,"to":""}`)).Code)
		time.Sleep(time.Second)
		require.Empty(t, w.shard(3).Requested)
	})
}

// fixed is a region whose shards the library places.
type fixed struct {
	*sharding.Region[*wrapperspb.StringValue]
}

func (f fixed) Status() sharding.Status {
	s := f.Region.Status()
	s.Type, s.Movable = "fixed", false
	return s
}

// mute is a region without Allocate.
type mute struct{ cockpit.Shards }

func (m mute) Status() sharding.Status {
	s := m.Shards.Status()
	s.Type = "mute"
	return s
}

// gone is a region while the member rejoins.
type gone struct{ cockpit.Shards }

func (gone) Status() sharding.Status { return sharding.Status{Type: "gone"} }

func TestMove_SaysWhyItDoesNothing(t *testing.T) {
	run(t, cockpit.Config{Actions: true, Authorize: everybody}, func(w *world) {
		s := w.nodes[0].sources()
		s.Shards = append(s.Shards, fixed{w.nodes[0].carts}, mute{w.nodes[0].carts},
			gone{w.nodes[0].carts})
		w.Show(s)
		for body, want := range map[string]struct {
			status int
			why    string
		}{
			`{"type":"none","shard":0,"to":"x"}`:  {404, "no type of shards"},
			`{"type":"fixed","shard":0,"to":"x"}`: {409, "External is not set"},
			`{"type":"mute","shard":0,"to":"x"}`:  {409, "External is not set"},
			`{"type":"gone","shard":0,"to":"x"}`:  {503, "rejoining"},
			`{"type":"cart","shard":16,"to":""}`:  {400, "from 0 to 15"},
			`{"type":"cart","shard":-1,"to":""}`:  {400, "from 0 to 15"},
			`{"type":"cart","shard":0,"to":"x"}`:  {400, w.Member(0).Address},
			`{"type":"cart","shard":0.5}`:         {400, "body"},
			`{"type":"cart","shard":0,"token":1}`: {400, "body"},
		} {
			status, why := w.refused(action("move", body))
			require.Equal(t, want.status, status, body)
			require.Contains(t, why, want.why, body)
		}
		bare := action("move", `{"type":"cart","shard":0,"to":""}`)
		bare.Header.Del("X-Concord-Action")
		require.Equal(t, http.StatusUnsupportedMediaType, w.do(bare).Code)
		foreign := action("move", `{"type":"cart","shard":0,"to":""}`)
		foreign.Header.Set("Origin", "http://evil.example")
		require.Equal(t, http.StatusForbidden, w.do(foreign).Code)
		got, err := w.nodes[0].carts.Allocations(w.t.Context())
		require.NoError(t, err)
		require.Empty(t, got)
	})
}

func TestActions_ThePageKnowsWhetherItMayAct(t *testing.T) {
	onlyLook := func(_ *http.Request, p cockpit.Permission) error {
		if p == cockpit.Act {
			return errors.New("no")
		}
		return nil
	}
	for name, c := range map[string]struct {
		cfg     cockpit.Config
		allowed bool
	}{
		"off":            {cockpit.Config{}, false},
		"only Authorize": {cockpit.Config{Authorize: everybody}, false},
		"may only look":  {cockpit.Config{Actions: true, Authorize: onlyLook}, false},
		"may act":        {cockpit.Config{Actions: true, Authorize: everybody}, true},
	} {
		run(t, c.cfg, func(w *world) {
			require.Equal(t, c.allowed, get[api.Actions](w, "actions").Allowed, name)
		})
	}
}

func TestShards_HiddenLeasesHaveNoName(t *testing.T) {
	run(t, cockpit.Config{Hide: []string{"shard-cart-3"}}, func(w *world) {
		require.Empty(t, w.shard(3).Lease)
		require.Equal(t, "shard-cart-4", w.shard(4).Lease)
	})
}
