package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/sharding/internal/core"
)

// passivations sends messages to a slot whose entities stop at once. It returns the entities
// passivated by each message, and how many messages met a running entity.
func passivations(policy core.Policy, limit int, trace []string) (ended [][]string, hits int) {
	slot := core.NewSlot(core.SlotConfig{Limit: limit, Policy: policy, Stash: 1})
	now := time.Unix(1000, 0)
	for _, id := range trace {
		now = now.Add(ms)
		var gone []string
		hit := true
		for _, e := range slices.Clone(slot.Step(now, core.Take{Body: core.Body{ID: id}})) {
			switch e := e.(type) {
			case core.Spawn:
				hit = false
			case core.End:
				gone = append(gone, e.ID)
				slot.Step(now, core.Terminated{ID: e.ID, Run: e.Run, Worked: true})
			}
		}
		if hit {
			hits++
		}
		ended = append(ended, gone)
		if slot.Len() > limit {
			panic(fmt.Sprint(slot.Len(), " entities run, at most ", limit))
		}
	}
	return ended, hits
}

// zipf returns a trace of n messages to the given number of entities with a Zipf distribution.
func zipf(seed uint64, entities uint64, n int) (trace []string) {
	z := rand.NewZipf(rand.New(rand.NewPCG(seed, 1)), 1.01, 1, entities-1)
	for range n {
		trace = append(trace, fmt.Sprint("e", z.Uint64()))
	}
	return trace
}

// scanned inserts scans over entities that are used only once into a trace, one after every given
// number of messages.
func scanned(trace []string, every, length int) (out []string) {
	n := 0
	for part := range slices.Chunk(trace, every) {
		out = append(out, part...)
		for range length {
			n++
			out = append(out, fmt.Sprint("scan", n))
		}
	}
	return out
}

// plainSLRU is the straightforward implementation: two lists that are searched.
type plainSLRU struct {
	limit       int
	once, again []string // most recently used first
}

func (p *plainSLRU) use(id string) (gone []string) {
	without := func(l []string) []string {
		return slices.DeleteFunc(l, func(o string) bool { return o == id })
	}
	if slices.Contains(p.once, id) || slices.Contains(p.again, id) {
		p.once, p.again = without(p.once), append([]string{id}, without(p.again)...)
		for len(p.again) > p.limit*4/5 {
			last := len(p.again) - 1
			p.once, p.again = append([]string{p.again[last]}, p.once...), p.again[:last]
		}
		return nil
	}
	p.once = append([]string{id}, p.once...)
	for len(p.once)+len(p.again) > p.limit {
		last := len(p.once) - 1
		gone, p.once = append(gone, p.once[last]), p.once[:last]
	}
	return gone
}

// S34d: SLRU agrees with the plain model.
func TestPolicy_SLRUIsAsAPlainModelSays(t *testing.T) {
	for _, limit := range []int{1, 2, 5, 40} {
		plain, trace := plainSLRU{limit: limit}, scanned(zipf(7, 200, 5000), 100, 20)
		ended, _ := passivations(core.SLRU, limit, trace)
		for k, id := range trace {
			require.Equal(t, plain.use(id), ended[k], "limit %d, message %d", limit, k)
		}
	}
}

// The trace has a Zipf distribution over 10,000 entities, of which 200 may run. The best policy
// with knowledge of the future frequencies keeps the 200 most used.
func TestPolicy_HitRates(t *testing.T) {
	const limit, n = 200, 100_000
	trace := zipf(1, 10_000, n)
	rates := map[string]float64{}
	for name, policy := range map[string]core.Policy{"LRU": core.LRU, "SLRU": core.SLRU,
		"LFU": core.LFU} {
		_, hits := passivations(policy, limit, trace)
		rates[name] = float64(hits) / n
		mixed := scanned(trace, 200, 100)
		_, hits = passivations(policy, limit, mixed)
		rates[name+" scanned"] = float64(hits) / n // of those that can be hits
	}
	rates["best"] = best(trace, limit)
	t.Log(rates)
	require.Greater(t, rates["SLRU"], rates["LRU"]+0.02)
	require.Greater(t, rates["LFU"], rates["SLRU"]+0.005)
	require.Greater(t, rates["LFU"], rates["best"]-0.05)
	require.Less(t, rates["LFU"], rates["best"])
	require.Greater(t, rates["SLRU scanned"], rates["LRU scanned"]+0.05)
	require.Greater(t, rates["LFU scanned"], rates["SLRU scanned"])
	require.Greater(t, rates["LFU scanned"], rates["LFU"]-0.03, "a scan costs LFU next to nothing")
}

// best returns the share of messages to the most used entities.
func best(trace []string, limit int) float64 {
	uses := map[string]int{}
	for _, id := range trace {
		uses[id]++
	}
	var all []int
	for _, n := range uses {
		all = append(all, n)
	}
	slices.Sort(all)
	sum := 0
	for _, n := range all[max(0, len(all)-limit):] {
		sum += n
	}
	return float64(sum) / float64(len(trace))
}

// S34f: when the popular entities change, those that were popular before are evicted.
func TestPolicy_LFUForgetsWhatWasUsedLongAgo(t *testing.T) {
	const limit, n = 200, 60_000
	first, then := zipf(1, 10_000, n), zipf(2, 10_000, n)
	for k := range then {
		then[k] = "other " + then[k]
	}
	_, alone := passivations(core.LFU, limit, then)
	_, before := passivations(core.LFU, limit, first)
	_, both := passivations(core.LFU, limit, slices.Concat(first, then))
	require.Greater(t, float64(both-before), 0.97*float64(alone))
}

// Limits are tested at their edges and changed at any time: never more entities run than allowed,
// and none is lost.
func TestPolicy_LimitsChange(t *testing.T) {
	for _, policy := range []core.Policy{core.LRU, core.SLRU, core.LFU} {
		slot := core.NewSlot(core.SlotConfig{Limit: 3, Policy: policy, Stash: 1})
		now, limit := time.Unix(1000, 0), 3
		r := rand.New(rand.NewPCG(3, uint64(policy)))
		for range 20_000 {
			now = now.Add(ms)
			var ev core.SlotEvent = core.Take{Body: core.Body{ID: fmt.Sprint(r.IntN(300))}}
			if r.IntN(50) == 0 {
				limit = []int{0, 1, 2, 7, 99, 100, 101, 250}[r.IntN(8)]
				ev = core.Limit{N: limit}
			}
			for _, e := range slices.Clone(slot.Step(now, ev)) {
				if e, ok := e.(core.End); ok {
					slot.Step(now, core.Terminated{ID: e.ID, Run: e.Run, Worked: true})
				}
			}
			require.True(t, limit == 0 || slot.Len() <= limit, "%d run, at most %d",
				slot.Len(), limit)
		}
		running, ended := slot.Len(), 0
		for _, e := range slices.Clone(slot.Step(now, core.StopAll{})) {
			if e, ok := e.(core.End); ok {
				ended++
				slot.Step(now, core.Terminated{ID: e.ID, Run: e.Run, Worked: true})
			}
		}
		require.Equal(t, running, ended)
		require.Zero(t, slot.Len())
	}
}
