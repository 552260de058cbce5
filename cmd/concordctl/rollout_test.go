package main

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/cockpit/api"
)

func ready() *api.Overview {
	return &api.Overview{Health: api.Health{Known: true, Ready: true},
		Cluster:     api.Cluster{Self: "a:1"},
		Replicators: []api.Replicator{{Name: "shop", Ready: true, Members: 3, Counted: 3}},
		Singletons:  []api.Singleton{{Name: "clerk", State: "elsewhere"}},
		Shards: []api.Shards{{Type: "cart", Hosts: []string{"a:1"},
			Homes: []api.Home{{Address: "a:1"}}, Map: []int{0, 0}}}}
}

// cockpitOf serves the overviews one after the other, and then the last one.
func cockpitOf(t *testing.T, all ...*api.Overview) string {
	var asked atomic.Int64
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i := min(int(asked.Add(1)), len(all)) - 1
		_ = json.NewEncoder(w).Encode(all[i])
	}))
}

func TestRollout_SaysWhyAMemberMayNotStop(t *testing.T) {
	require.Empty(t, obstaclesAt(ready()))
	for want, change := range map[string]func(o *api.Overview){
		"it is not ready: no store": func(o *api.Overview) {
			o.Health.Ready, o.Health.Why = false, []string{"no store"}
		},
		"it is in no cluster":                  func(o *api.Overview) { o.Cluster.Self = "" },
		"it is cut off from the other members": func(o *api.Overview) { o.Cluster.CutOff = true },
		"the cluster is split from b:1": func(o *api.Overview) {
			o.Cluster.Split = []string{"b:1"}
		},
		"missing members: b:1, c:1": func(o *api.Overview) {
			o.Cluster.Lost = []string{"b:1", "c:1"}
		},
		"the cockpit at http://b does not answer: refused": func(o *api.Overview) {
			o.Peers = []api.Peer{{URL: "http://b", Error: "refused"}}
		},
		"replicator shop is not ready: filling": func(o *api.Overview) {
			o.Replicators[0].Ready, o.Replicators[0].NotReady = false, "filling"
		},
		"replicator shop counts members that are not there: n3": func(o *api.Overview) {
			o.Replicators[0].Missing = []string{"n3"}
		},
		"replicator shop counts 3 of 4 members: a new one is not filled yet": func(o *api.Overview) {
			o.Replicators[0].Members = 4
		},
		"replicator shop counts 2 members: without one of them there is no majority": func(
			o *api.Overview) {
			o.Replicators[0].Members, o.Replicators[0].Counted = 2, 2
		},
		"singleton clerk has no host": func(o *api.Overview) { o.Singletons[0].State = "unknown" },
		"1 shard of cart without a home": func(o *api.Overview) {
			o.Shards[0].Map[1] = -1
		},
		"2 shards of cart without a home": func(o *api.Overview) { o.Shards[0].Hosts = nil },
	} {
		o := ready()
		change(o)
		require.Equal(t, []string{want}, obstaclesAt(o))
	}
}

func TestRollout_WaitsUntilAMemberMayStop(t *testing.T) {
	starting := ready()
	starting.Replicators[0].Missing = []string{"n3"}
	status, out, errs := ctlRun(t, cockpitOf(t, starting, ready(), starting, ready()), "rollout")
	require.Equal(t, exitOK, status, errs)
	require.Equal(t, "The cluster may lose a member.\n", out)

	status, out, errs = ctlRun(t, "", "rollout", "-within", "1ms", cockpitOf(t, ready()),
		cockpitOf(t, starting))
	require.Equal(t, exitWrong, status)
	require.Empty(t, out)
	require.Equal(t, "concordctl: after 1ms the cluster may not lose a member:\n"+
		"a:1: replicator shop counts members that are not there: n3\n", errs)
}

func TestRollout_OfACockpitThatDoesNotAnswer(t *testing.T) {
	status, _, errs := ctlRun(t, "127.0.0.1:1", "rollout", "-within", "1ms")
	require.Equal(t, exitWrong, status)
	require.Contains(t, errs, "no answer from http://127.0.0.1:1")
	status, _, _ = ctlRun(t, "127.0.0.1:1", "rollout", "-within", "-1s")
	require.Equal(t, exitUsage, status)
	refuses := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"not authorized"}`))
	}))
	status, _, _ = ctlRun(t, refuses, "rollout")
	require.Equal(t, exitRefused, status)
}
