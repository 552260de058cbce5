package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/concord-go/concord/internal/cockpit/api"
	"github.com/concord-go/concord/sharding"
)

// Kinds of times.
const (
	Behind     = "behind"
	Singletons = "singletons"
	TakenOver  = "shards"
	Faults     = "faults"
)

// kinds is in the order of the page.
var kinds = [...]string{Behind, Singletons, TakenOver, Faults}

// maxSamples bounds the samples of each kind.
const maxSamples = 32

// Times collects durations from successive overviews. The zero value is ready to use.
type Times struct {
	at      time.Time            // of the last overview
	behind  map[string]time.Time // by replicator and member: when its lag was first seen
	places  map[string]time.Time // by singleton: Since of the last place
	shards  map[string]time.Time // by type: the latest Since of an active shard
	healed  time.Time            // of the last fault
	series  map[string]*api.Times
	changed bool
	last    []api.Times
}

// Note adds an overview, and the status of the shards in it. If the previous overview was taken
// longer than most before, it drops the lags that it is timing, because it cannot tell when they
// ended.
func (t *Times) Note(o *api.Overview, shards []sharding.Status, most time.Duration) {
	if t.series == nil {
		t.behind, t.places, t.shards, t.series = map[string]time.Time{}, map[string]time.Time{},
			map[string]time.Time{}, map[string]*api.Times{}
		for _, kind := range kinds {
			t.series[kind] = &api.Times{Kind: kind, Samples: []api.Sample{}}
		}
		t.changed = true
	}
	if o.At.Sub(t.at) > most {
		clear(t.behind)
	}
	t.at = o.At
	t.lags(o)
	for _, s := range o.Singletons {
		if s.State == "unknown" || s.Since == nil || t.places[s.Name].Equal(*s.Since) {
			continue
		}
		_, again := t.places[s.Name]
		t.places[s.Name] = *s.Since
		if again || s.TakeOverMS > 0 {
			t.add(Singletons, *s.Since, s.TakeOverMS, fmt.Sprintf("%s on %s, token %d", s.Name,
				s.Host, s.Token))
		}
	}
	for _, s := range shards {
		t.takeOvers(s)
	}
	if f := o.Cluster.Fault; f != nil && f.Healed != nil && !f.Healed.Equal(t.healed) {
		t.healed = *f.Healed
		t.add(Faults, *f.Healed, f.TookMS, f.What)
	}
}

// lags times how long each member is behind.
func (t *Times) lags(o *api.Overview) {
	present := map[string]bool{}
	for _, r := range o.Replicators {
		for _, l := range r.Lag {
			key := r.Name + ": " + l.Member
			present[key] = true
			since, was := t.behind[key]
			switch {
			case l.Updates > 0 && !was:
				t.behind[key] = o.At
			case l.Updates == 0 && was:
				delete(t.behind, key)
				t.add(Behind, o.At, o.At.Sub(since).Milliseconds(), key)
			}
		}
	}
	for key := range t.behind {
		if !present[key] {
			delete(t.behind, key) // the member has left
		}
	}
}

// takeOvers adds the slowest of the shards that have become active since the last call.
func (t *Times) takeOvers(s sharding.Status) {
	last := t.shards[s.Type]
	latest, slowest, n := last, time.Duration(0), 0
	for _, sh := range s.Shards {
		if sh.State != sharding.Active || !sh.Since.After(last) {
			continue
		}
		n++
		slowest = max(slowest, sh.TakeOver)
		if sh.Since.After(latest) {
			latest = sh.Since
		}
	}
	if n == 0 {
		return
	}
	t.shards[s.Type] = latest
	what := "1 shard of " + s.Type
	if n > 1 {
		what = fmt.Sprintf("the slowest of %d shards of %s", n, s.Type)
	}
	t.add(TakenOver, latest.UTC(), slowest.Milliseconds(), what)
}

func (t *Times) add(kind string, at time.Time, ms int64, what string) {
	s := t.series[kind]
	s.Count++
	s.Samples = append(s.Samples, api.Sample{At: at, MS: ms, What: Cut(what, maxText)})
	if len(s.Samples) > maxSamples {
		s.Samples = slices.Delete(s.Samples, 0, 1)
	}
	t.changed = true
}

// List returns the times of each kind. The slices are never written again.
func (t *Times) List() []api.Times {
	if t.changed {
		t.changed, t.last = false, []api.Times{}
		for _, kind := range kinds {
			s := *t.series[kind]
			s.Samples = slices.Clone(s.Samples)
			t.last = append(t.last, s)
		}
	}
	return t.last
}
