package view_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/distributeddata"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/singleton"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestCut_EndsAtARune(t *testing.T) {
	for most := range 10 {
		got := view.Cut("käseбро", most)
		require.True(t, utf8.ValidString(got), "%d: %q", most, got)
	}
	require.Equal(t, "abc", view.Cut("abc", 3))
	require.Equal(t, "ab…", view.Cut("abc", 2))
}

func TestReplicator_TheLargestLagIsFirst(t *testing.T) {
	lag := map[string]uint64{"b": 7, "A": 7, "c": 9}
	for i := range 100 {
		lag[strings.Repeat("x", i+1)] = 1
	}
	r := view.Replicator("shop", strings.ToLower, distributeddata.Status{
		Lag: lag, Sent: map[string]distributeddata.Traffic{"push": {Messages: 2, Bytes: 20},
			"ack": {Messages: 1, Bytes: 5}}})
	require.Len(t, r.Lag, 64)
	require.Equal(t, []api.Lag{{Member: "c", Updates: 9}, {Member: "a", Updates: 7},
		{Member: "b", Updates: 7}}, r.Lag[:3])
	require.Equal(t, uint64(25), r.SentBytes)
	require.Equal(t, "ack", r.Sent[0].Kind)
}

func TestSession_WhatIsUrgentIsFirst(t *testing.T) {
	lease := func(name string, s coordination.LeaseStatus) api.Lease {
		s.Name = name
		return view.Lease("s", s, now)
	}
	all := []api.Lease{
		lease("known", coordination.LeaseStatus{}),
		lease("late", coordination.LeaseStatus{Held: true, Remaining: time.Minute}),
		lease("soon", coordination.LeaseStatus{Held: true, Remaining: time.Second}),
		lease("waits", coordination.LeaseStatus{Waiting: 2, Failure: errors.New("away")}),
		lease("near", coordination.LeaseStatus{Held: true, NearExpiry: true, Remaining: time.Hour}),
		lease("forever", coordination.LeaseStatus{Held: true, Forever: true}),
	}
	s := view.Session("s", coordination.Status{Lost: map[coordination.Loss]uint64{
		coordination.Expired: 3}}, false, all)
	var names []string
	for _, l := range s.Leases {
		names = append(names, l.Name)
	}
	require.Equal(t, []string{"near", "waits"}, names[:2])
	require.Less(t, strings.Index(strings.Join(names, " "), "soon"),
		strings.Index(strings.Join(names, " "), "late"))
	require.Equal(t, "known", names[5])
	require.Equal(t, 6, s.Known)
	require.Equal(t, uint64(3), s.Lost[coordination.Expired.String()])
	require.Equal(t, now.Add(time.Second), *all[2].Expires)
	require.Nil(t, all[5].Expires)
	require.Equal(t, "away", all[3].Failure)
}

func TestSingleton_States(t *testing.T) {
	place := singleton.Place{Address: "a:1", Token: 3, Since: now}
	require.Equal(t, "here", view.Singleton("s", "a:1", place, true, singleton.Stats{}).State)
	require.Equal(t, "elsewhere", view.Singleton("s", "b:1", place, true, singleton.Stats{}).State)
	require.Equal(t, "unknown", view.Singleton("s", "a:1", place, false, singleton.Stats{}).State)
	require.Nil(t, view.Singleton("s", "", singleton.Place{}, false, singleton.Stats{}).Since)
}

func TestShards_TheMapIsBounded(t *testing.T) {
	st := sharding.Status{Type: "cart"}
	for i := range 3000 {
		home := []string{"x", "y", ""}[i%3]
		st.Shards = append(st.Shards, sharding.ShardStatus{Shard: i, Home: home})
	}
	s := view.Shards(st, sharding.Stats{}, api.Cluster{Self: "at-x"}, func(id string) string {
		return "at-" + id
	})
	require.Len(t, s.Map, 1024)
	require.Equal(t, []int{0, 1, -1}, s.Map[:3])
	require.Equal(t, []api.Home{{ID: "x", Address: "at-x", Shards: 1000, Here: true},
		{ID: "y", Address: "at-y", Shards: 1000}}, s.Homes)
}

// whole returns an overview without problems.
func whole() *api.Overview {
	return &api.Overview{At: now, Cluster: api.Cluster{Self: "a:1", GateOpen: true,
		Members: []api.Member{{Address: "a:1"}, {Address: "b:1"}}}}
}

// A cut-off member said "forget nobody here", and below that "forget members that will not return";
// a full disk had the remedy of a missing member.
func TestProblems_WhatFollowsFromACauseHasNoOtherRemedy(t *testing.T) {
	for name, spoil := range map[string]func(o *api.Overview){
		"cut off": func(o *api.Overview) {
			o.Cluster.Lost, o.Cluster.CutOff = []string{"b:1", "c:1"}, true
			o.Replicators = []api.Replicator{{Missing: []string{"b", "c"}, NotReady: "few members"}}
		},
		"lease store": func(o *api.Overview) { o.Sessions = []api.Session{{Failing: true}} },
		"disk": func(o *api.Overview) {
			o.Replicators = []api.Replicator{{NotReady: "the disk is full",
				Durable: &api.Durable{Disk: "full"}}}
			o.Singletons, o.Shards = nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := whole()
			o.Singletons = []api.Singleton{{State: "unknown"}}
			o.Shards = []api.Shards{{States: map[string]int{"stashing": 3}}}
			spoil(o)
			require.Len(t, view.Problems(o), 1)
		})
	}
	o := whole()
	o.Replicators = []api.Replicator{{Missing: []string{"b"}, NotReady: "receiving data"}}
	require.Contains(t, view.Problems(o)[0].Do, "only a missing member has")
}

func TestProblems_EachSaysWhatToDo(t *testing.T) {
	require.Empty(t, view.Problems(whole()))
	require.NotNil(t, view.Problems(whole()))
	for name, c := range map[string]struct {
		spoil    func(o *api.Overview)
		severity string
	}{
		"removed": {func(o *api.Overview) { o.Cluster.Removed = "dropped" }, view.Bad},
		"split":   {func(o *api.Overview) { o.Cluster.Split = []string{"c:1"} }, view.Bad},
		"lost":    {func(o *api.Overview) { o.Cluster.Lost = []string{"c:1"} }, view.Bad},
		"gate":    {func(o *api.Overview) { o.Cluster.GateOpen = false }, view.Warn},
		"no cluster": {func(o *api.Overview) {
			o.Cluster = api.Cluster{GateOpen: true}
		}, view.Warn},
		"peer": {func(o *api.Overview) {
			o.Peers = []api.Peer{{Self: "b:1", Members: []string{"b:1"}}}
		}, view.Warn},
		"not ready": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{NotReady: "why"}}
		}, view.Warn},
		"missing": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{Missing: []string{"c"}}}
		}, view.Warn},
		"diverged": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{Diverged: 1}}
		}, view.Bad},
		"panics": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{Panics: 1}}
		}, view.Bad},
		"panics of a session": {func(o *api.Overview) {
			o.Sessions = []api.Session{{Panics: 1}}
		}, view.Bad},
		"panics of a singleton": {func(o *api.Overview) {
			o.Singletons = []api.Singleton{{Panics: 1}}
		}, view.Bad},
		"panics of shards": {func(o *api.Overview) {
			o.Shards = []api.Shards{{Panics: 1}}
		}, view.Bad},
		"faults": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{Faults: 1}}
		}, view.Warn},
		"limit": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{NearLimits: []string{"x"}}}
		}, view.Warn},
		"trouble": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{Trouble: "x"}}
		}, view.Bad},
		"durable": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{OtherDurable: []string{"x"}}}
		}, view.Bad},
		"disk": {func(o *api.Overview) {
			o.Replicators = []api.Replicator{{Durable: &api.Durable{Disk: "full"}}}
		}, view.Bad},
		"lease": {func(o *api.Overview) {
			o.Sessions = []api.Session{{NearExpiry: 1}}
		}, view.Bad},
		"singleton": {func(o *api.Overview) {
			o.Singletons = []api.Singleton{{State: "unknown"}}
		}, view.Warn},
		"shards": {func(o *api.Overview) {
			o.Shards = []api.Shards{{States: map[string]int{"stashing": 1}}}
		}, view.Warn},
		"store of remembered entities": {func(o *api.Overview) {
			o.Shards = []api.Shards{{StoreFails: true}}
		}, view.Bad},
		"entities": {func(o *api.Overview) { o.Shards = []api.Shards{{Failed: 1}} }, view.Warn},
		"health": {func(o *api.Overview) {
			o.Health = api.Health{Known: true, Why: []string{"stopped"}}
		}, view.Bad},
	} {
		o := whole()
		c.spoil(o)
		got := view.Problems(o)
		require.Len(t, got, 1, name)
		require.Equal(t, c.severity, got[0].Severity, name)
		require.NotEmpty(t, got[0].What, name)
		require.Greater(t, len(got[0].Do), 10, name)
	}
	o := whole()
	o.Replicators = []api.Replicator{{Faults: 1}, {Panics: 1}}
	require.Equal(t, view.Bad, view.Problems(o)[0].Severity, "bad problems come first")
}

func TestFault_LastsFromTheFirstTroubleToTheLast(t *testing.T) {
	o := whole()
	require.Nil(t, view.Fault(nil, o))
	o.Cluster.Lost = []string{"c:1"}
	f := view.Fault(nil, o)
	require.True(t, f.Ongoing)
	o.At = now.Add(time.Second)
	o.Cluster.Split = []string{"d:1"}
	f = view.Fault(f, o)
	require.Equal(t, now, f.Since)
	require.Contains(t, f.What, "d:1")
	o = whole()
	o.At = now.Add(3 * time.Second)
	f = view.Fault(f, o)
	require.False(t, f.Ongoing)
	require.Equal(t, int64(3000), f.TookMS)
	o.At = now.Add(time.Hour)
	require.Equal(t, f, view.Fault(f, o), "a healed fault does not change")
}

func TestDiff_TellsWhatHasChanged(t *testing.T) {
	require.Empty(t, view.Diff(nil, whole()))
	require.Empty(t, view.Diff(whole(), whole()))
	old, next := whole(), whole()
	old.Replicators, next.Replicators = []api.Replicator{{Name: "shop", Ready: true}},
		[]api.Replicator{{Name: "shop", Diverged: 1}}
	old.Sessions, next.Sessions = []api.Session{{Name: "s", Lost: map[string]uint64{}}},
		[]api.Session{{Name: "s", NearExpiry: 1, Lost: map[string]uint64{"expired": 2}}}
	old.Singletons = []api.Singleton{{Name: "clerk", State: "here", Host: "a:1", Token: 1},
		{Name: "other", State: "here", Host: "a:1", Token: 1}}
	next.Singletons = []api.Singleton{{Name: "clerk", State: "elsewhere", Host: "b:1", Token: 2},
		{Name: "other", State: "unknown", Host: "a:1", Token: 1}}
	homes := []api.Home{{ID: "x"}, {ID: "y"}}
	old.Shards, next.Shards = []api.Shards{{Type: "cart", Homes: homes, Map: []int{0, 1, -1}}},
		[]api.Shards{{Type: "cart", Homes: homes[1:], Map: []int{0, 0, -1}}}
	old.Cluster.Fault, next.Cluster.Fault = &api.Fault{Ongoing: true},
		&api.Fault{TookMS: 1500, What: "missing c:1"}
	next.Cluster.Members = append(next.Cluster.Members[:1], api.Member{Address: "d:1"})
	next.Cluster.Lost = []string{"b:1"}
	var all []string
	for _, e := range view.Diff(old, next) {
		require.Equal(t, "watch", e.From)
		require.Equal(t, now, e.At)
		all = append(all, e.Level+": "+e.Text)
	}
	require.Equal(t, []string{
		"info: d:1 joined the cluster", "error: b:1 is missing",
		"info: the cluster is whole again after 1.5s: missing c:1",
		"warn: replicator shop is not ready", "error: replicator shop found a divergence",
		"error: session s lost 2 leases: expired", "warn: session s: 1 leases near expiry",
		"info: singleton clerk runs on b:1 with token 2", "warn: singleton other has no known host",
		"info: 1 shards of cart moved to another home",
	}, all)
	next.Cluster.Lost = nil
	require.Contains(t, view.Diff(old, next)[1].Text, "b:1 left the cluster")
}

// A member that is cut off says so, and does not advise to forget the others.
func TestProblems_OfAMemberThatIsCutOff(t *testing.T) {
	for name, c := range map[string]struct {
		members, lost []string
		open, want    bool
	}{
		"whole":               {[]string{"a:1", "b:1", "c:1"}, nil, true, false},
		"a majority":          {[]string{"a:1", "b:1"}, []string{"c:1"}, true, false},
		"a minority":          {[]string{"a:1"}, []string{"b:1", "c:1"}, true, true},
		"the half that stops": {[]string{"a:1"}, []string{"b:1"}, false, true},
		"the half that hosts": {[]string{"a:1"}, []string{"b:1"}, true, false},
		"it starts":           {[]string{"a:1"}, nil, false, false},
	} {
		o := &api.Overview{Cluster: api.Cluster{Self: "a:1", Lost: c.lost, GateOpen: c.open,
			GateWhy: []string{"why"}}}
		for _, m := range c.members {
			o.Cluster.Members = append(o.Cluster.Members, api.Member{Address: m})
		}
		require.Equal(t, c.want, view.CutOff(o.Cluster), name)
		if !c.want {
			continue
		}
		o.Cluster.CutOff = true
		all := view.Problems(o)
		require.Len(t, all, 1, name)
		require.Contains(t, all[0].What, "this member is cut off: it sees 1 of ", name)
		require.Contains(t, all[0].Do, "Forget nobody here", name)
	}
}
