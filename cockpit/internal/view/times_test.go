package view_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/sharding"
)

// samples returns the samples of one kind.
func samples(t *testing.T, times *view.Times, kind string) []api.Sample {
	t.Helper()
	for _, s := range times.List() {
		if s.Kind == kind {
			require.NotNil(t, s.Samples)
			return s.Samples
		}
	}
	t.Fatalf("no kind %s", kind)
	return nil
}

// lag returns an overview taken the given time after now, in which member b:1 has a lag.
func lag(after time.Duration, n uint64) *api.Overview {
	return &api.Overview{At: now.Add(after), Replicators: []api.Replicator{
		{Name: "shop", Lag: []api.Lag{{Member: "b:1", Updates: n}}}}}
}

const most = 2 * time.Second

func TestTimes_AMemberIsBehindUntilItsLagIsZero(t *testing.T) {
	var times view.Times
	for _, o := range []*api.Overview{lag(0, 0), lag(time.Second, 5), lag(2*time.Second, 9),
		lag(3*time.Second, 0), lag(4*time.Second, 0)} {
		times.Note(o, nil, most)
	}
	require.Equal(t, []api.Sample{{At: now.Add(3 * time.Second), MS: 2000, What: "shop: b:1"}},
		samples(t, &times, view.Behind))

	times.Note(lag(5*time.Second, 1), nil, most)
	times.Note(lag(time.Hour, 0), nil, most)
	require.Len(t, samples(t, &times, view.Behind), 1, "nobody looked for an hour")
	times.Note(lag(time.Hour+time.Second, 1), nil, most)
	gone := lag(time.Hour+2*time.Second, 0)
	gone.Replicators[0].Lag = nil
	times.Note(gone, nil, most)
	times.Note(lag(time.Hour+3*time.Second, 0), nil, most)
	require.Len(t, samples(t, &times, view.Behind), 1, "a member that has left has not caught up")
}

func TestTimes_TheLastSamplesAreKept(t *testing.T) {
	var times view.Times
	for i := range 100 {
		times.Note(lag(time.Duration(2*i)*time.Second, 1), nil, most)
		times.Note(lag(time.Duration(2*i+1)*time.Second, 0), nil, most)
	}
	before := samples(t, &times, view.Behind)
	require.Len(t, before, 32)
	require.Equal(t, now.Add(199*time.Second), before[31].At)
	require.Equal(t, uint64(100), times.List()[0].Count)
	first := before[0]
	times.Note(lag(200*time.Second, 1), nil, most)
	times.Note(lag(201*time.Second, 0), nil, most)
	require.Equal(t, first, before[0], "a list that was returned does not change")
}

func TestTimes_ASingletonThatHasMoved(t *testing.T) {
	var times view.Times
	place := func(at time.Duration, state, host string, token uint64, took int64) *api.Overview {
		return &api.Overview{At: now.Add(at), Singletons: []api.Singleton{
			{Name: "clerk", State: state, Host: host, Token: token, Since: new(now.Add(at)),
				TakeOverMS: took}}}
	}
	times.Note(place(0, "here", "a:1", 1, 0), nil, most)
	require.Empty(t, samples(t, &times, view.Singletons),
		"the first place was taken over from nobody")
	unknown := place(0, "unknown", "a:1", 1, 0)
	unknown.At = now.Add(time.Second)
	times.Note(unknown, nil, most)
	next := place(2*time.Second, "elsewhere", "b:1", 2, 1234)
	times.Note(next, nil, most)
	times.Note(next, nil, most)
	require.Equal(t, []api.Sample{
		{At: now.Add(2 * time.Second), MS: 1234, What: "clerk on b:1, token 2"}},
		samples(t, &times, view.Singletons))
}

func TestTimes_ShardsThatWereTakenOver(t *testing.T) {
	var times view.Times
	st := sharding.Status{Type: "cart", Shards: []sharding.ShardStatus{
		{State: sharding.Active, Since: now, TakeOver: time.Second},
		{State: sharding.Active, Since: now.Add(time.Second), TakeOver: 3 * time.Second},
		{State: sharding.AwaitingLease, Since: now.Add(time.Hour)},
		{State: sharding.Elsewhere},
	}}
	note := func() { times.Note(whole(), []sharding.Status{st}, most) }
	note()
	note()
	require.Equal(t, []api.Sample{
		{At: now.Add(time.Second), MS: 3000, What: "the slowest of 2 shards of cart"}},
		samples(t, &times, view.TakenOver))
	st.Shards[2] = sharding.ShardStatus{State: sharding.Active, Since: now.Add(2 * time.Hour),
		TakeOver: time.Hour}
	note()
	require.Equal(t, api.Sample{At: now.Add(2 * time.Hour), MS: 3_600_000, What: "1 shard of cart"},
		samples(t, &times, view.TakenOver)[1])
}

func TestTimes_FaultsThatHaveHealed(t *testing.T) {
	var times view.Times
	o := whole()
	o.Cluster.Fault = &api.Fault{What: "missing c:1", Since: now, Ongoing: true}
	times.Note(o, nil, most)
	require.Empty(t, samples(t, &times, view.Faults))
	o.Cluster.Fault = &api.Fault{What: "missing c:1", Since: now, Healed: new(now.Add(time.Second)),
		TookMS: 1000}
	times.Note(o, nil, most)
	times.Note(o, nil, most)
	require.Equal(t, []api.Sample{{At: now.Add(time.Second), MS: 1000, What: "missing c:1"}},
		samples(t, &times, view.Faults))
}
