package distributeddata

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
)

// world has subscriptions and the content of entries, and plays the actor's part.
type world struct {
	*subscriptions
	durableKeys *durableKeys
	cores       [2]*core.Core                // of volatile and durable keys
	told        map[string]map[string]uint64 // what each subscriber knows: the last dot of each key
	count       int
	via         []string // subscriptions through which notices came
}

// newWorld returns a world with the given durable keys.
func newWorld(durable ...string) *world {
	chosen, err := newDurableKeys(durable)
	if err != nil {
		panic(err)
	}
	w := &world{subscriptions: newSubscriptions(), told: map[string]map[string]uint64{},
		durableKeys: chosen}
	for i := range w.cores {
		w.cores[i] = core.New(core.Config{
			NewReplica: func() causal.Replica {
				return causal.Replica(i + 1)
			}, LogBytes: 1 << 20, PushBytes: 1 << 20, PartBytes: 1 << 10,
		})
	}
	return w
}

// now returns the current state.
func (w *world) now() *replicatorView {
	p := &replicatorView{domainView: domainView{keys: w.cores[0].Keys(), seen: w.cores[0].Seen()},
		durableKeys: w.durableKeys}
	if w.durableKeys != nil {
		p.durable = &domainView{keys: w.cores[1].Keys(), seen: w.cores[1].Seen()}
	}
	return p
}

// put changes entries.
func (w *world) put(keys ...string) { w.change(false, keys) }

func (w *world) clear(keys ...string) { w.change(true, keys) }

func (w *world) change(gone bool, keys []string) {
	var of [2][]string
	for _, k := range keys {
		d := 0
		if w.durableKeys.durable(k) {
			d = 1
		}
		of[d] = append(of[d], k)
	}
	for d, keys := range of {
		w.step(w.cores[d], gone, keys)
	}
}

func (w *world) step(c *core.Core, gone bool, keys []string) {
	effects := c.Step(c.NextWake(), core.Update{ID: 1, Modify: func(t *history.Txn) error {
		for _, k := range keys {
			if gone {
				t.Clear(k)
			} else {
				t.Put(k, t.Get(k).Put("p", causal.Leaf{Dot: t.Dot()}))
			}
		}
		return nil
	}})
	for _, e := range effects {
		if c, ok := e.(core.Changed); ok {
			w.changed(c.Keys, w.now())
		}
	}
}

// subscribe corresponds to replica.subscribe.
func (w *world) subscribe(who, text string, exact bool) {
	s, _ := w.watcher(actor.NewPID("host", who))
	via := strings.TrimSuffix(text, "*")
	sub := w.add(s, text, exact, func(key string, old, now entryView, _ func(any)) {
		w.count++
		w.via = append(w.via, via)
		if w.told[who] == nil {
			w.told[who] = map[string]uint64{}
		}
		if now.store.Empty() {
			delete(w.told[who], key)
		} else {
			w.told[who][key] = now.dot()
		}
	})
	if !exact {
		s.begin(text)
		w.late(s)
		return
	}
	s.toldOf(text, w.now().get(text))
	w.notify(sub, text, entryView{})
}

func (w *world) notify(s *subscription, key string, old entryView) {
	if now := w.now().get(key); !old.store.SameValue(now.store) {
		s.notice(key, old, now, nil)
	}
}

func (t entryView) dot() uint64 {
	e, _ := t.store.Get("p")
	return e.First().N
}

// tell sends up to most notices, and reports whether there are more.
func (w *world) tell(most int) bool {
	for most > 0 {
		s := w.next()
		if s == nil {
			return false
		}
		most -= max(s.tell(most, w.now(), w.notify), 1)
		if !s.behind() {
			w.settled(s)
		}
	}
	return w.behind.Len() > 0
}

func (w *world) isEmpty(t *testing.T) {
	require.Empty(t, w.watchers)
	require.Empty(t, w.byKey)
	require.Empty(t, w.byPrefix)
	require.Empty(t, w.lengths)
	require.Empty(t, w.subscriptions.count)
	require.Zero(t, w.behind.Len())
}

func numbered(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("%s%06d", prefix, i))
	}
	return keys
}

func TestSubscriptions_EndOneByOneAndTogether(t *testing.T) {
	w, keys := newWorld(), numbered("key-", 10)
	for _, k := range keys {
		w.subscribe("one", k, true)
	}
	w.subscribe("other", keys[3], true)
	one, other := actor.NewPID("host", "one"), actor.NewPID("host", "other")
	require.False(t, w.remove(one, keys[0], true))
	require.False(t, w.remove(one, keys[0], true), "twice")
	require.False(t, w.remove(one, keys[1], false), "another kind")
	w.put(keys...)
	w.put(keys...)
	require.Len(t, w.watchers["one"].queue, 9)
	require.False(t, w.tell(1<<30))
	require.Equal(t, 10, w.count)
	w.removeAll(one)
	w.put(keys...)
	require.False(t, w.tell(1<<30))
	require.Equal(t, 11, w.count)
	require.True(t, w.remove(other, keys[3], true))
	w.isEmpty(t)
}

func TestSubscriptions_AreToldInStrides(t *testing.T) {
	w, keys := newWorld(), numbered("key-", 10)
	for _, k := range keys {
		w.subscribe("one", k, true)
	}
	w.put(keys...)
	require.True(t, w.tell(4))
	require.Equal(t, 4, w.count)
	w.put(keys[3:5]...) // the one has been sent, and is again; the other has not
	require.Len(t, w.watchers["one"].queue, 7)
	require.True(t, w.tell(4))
	require.False(t, w.tell(4))
	require.Equal(t, 11, w.count)
	require.Nil(t, w.watchers["one"].noted)
}

// A subscriber that is behind does not block others: they take turns.
func TestSubscriptions_TakeTurns(t *testing.T) {
	w, keys := newWorld(), numbered("key-", 1000)
	w.put(keys...)
	w.subscribe("all", "", false)
	w.subscribe("one", "later", true)
	require.True(t, w.tell(100))
	w.put("later")
	require.True(t, w.tell(100))
	require.True(t, w.tell(1))
	require.Len(t, w.told["one"], 1)
	require.Less(t, len(w.told["all"]), 250)
}

// Whatever a subscriber subscribes to, and in whatever order things happen, it is notified of each
// change at most once, through the most specific subscription, and in the end knows the final
// state.
func TestSubscriptions_AreAsAPlainModelSays(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 16))
		w, live := newWorld([][]string{nil, {"abc*", "b"}, {"ab*"}, {"*"}}[seed%4]...),
			map[string]bool{}
		texts := []string{"", "a", "ab", "abc", "b"}
		keys := []string{"a", "ab", "ab1", "abc", "abc1", "abc2", "b", "b1", "c"}
		names := func(k string) (best string, ok bool) {
			if live[k+"true"] {
				return k, true
			}
			for _, p := range texts {
				if strings.HasPrefix(k, p) && live[p+"false"] && len(p) >= len(best) {
					best, ok = p, true
				}
			}
			return best, ok
		}
		pick := func() (text string, exact bool) {
			if r.IntN(2) == 0 {
				return keys[r.IntN(len(keys))], true
			}
			return texts[r.IntN(len(texts))], false
		}
		for range 60 {
			switch r.IntN(6) {
			case 0, 1:
				w.put(keys[r.IntN(len(keys))], keys[r.IntN(len(keys))])
			case 2:
				w.clear(keys[r.IntN(len(keys))])
			case 3:
				text, exact := pick()
				w.subscribe("one", text, exact)
				live[fmt.Sprint(text, exact)] = true
			case 4:
				text, exact := pick()
				w.remove(actor.NewPID("host", "one"), text, exact)
				delete(live, fmt.Sprint(text, exact))
				for _, k := range keys { // only later notices count
					if _, ok := names(k); !ok {
						delete(w.told["one"], k)
					}
				}
			default:
				w.tell(1 + r.IntN(3))
			}
		}
		for w.tell(100) {
		}
		for _, k := range keys {
			now := w.now().get(k)
			if _, ok := names(k); !ok {
				continue
			}
			if now.store.Empty() {
				require.NotContains(t, w.told["one"], k, "seed %d", seed)
			} else {
				require.Equal(t, now.dot(), w.told["one"][k], "seed %d, key %s", seed, k)
			}
		}
		for _, k := range keys { // one notice for one change
			w.count, w.via = 0, nil
			w.put(k)
			for w.tell(100) {
			}
			if best, ok := names(k); ok {
				require.Equal(t, []string{best}, w.via, "seed %d, key %s", seed, k)
			} else {
				require.Empty(t, w.via, "seed %d, key %s", seed, k)
			}
		}
		w.removeAll(actor.NewPID("host", "one"))
		w.isEmpty(t)
	}
}

// Changes that a step did not report are noticed.
func TestSubscriptions_CatchUp(t *testing.T) {
	w := newWorld()
	w.subscribe("one", "a", false)
	w.tell(10)
	other := newWorld()
	other.put("a1", "b")
	w.cores = other.cores
	w.caughtUp(w.now())
	w.tell(10)
	require.Equal(t, 1, w.count)
	w.caughtUp(w.now())
	require.Zero(t, w.behind.Len())
}

// A million subscriptions that begin and end leave nothing behind, also with changes in between.
func TestSubscriptions_LeaveNothing(t *testing.T) {
	w := newWorld()
	names := numbered("key-", 1000)
	w.put(names[:100]...)
	for i := range 231_000 { // every combination of what follows
		who, text, exact := fmt.Sprint("w", i%7), names[i*31%1000][:i*17%11], false
		if i%3 == 0 {
			text, exact = names[i*37%1000], true
		}
		w.subscribe(who, text, exact)
		if i%1000 == 0 {
			w.put(names[i/1000%100])
		}
		if i%2 == 0 {
			w.tell(3)
		}
		w.remove(actor.NewPID("host", who), text, exact)
	}
	w.isEmpty(t)
}

// A change does not pay for subscriptions that it does not concern: the test counts the inspected
// ones.
func TestSubscriptions_AChangeCostsItsSubscribers(t *testing.T) {
	w := newWorld()
	for i, k := range numbered("key-", 100_000) {
		w.subscribe(fmt.Sprint("w", i%1000), k, true)
	}
	w.subscribe("all", "key-", false)
	looked := 0
	w.matching("key-000500", func(*subscription) { looked++ })
	require.Equal(t, 2, looked)
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		w.changed([]string{"key-000500", "elsewhere"}, w.was)
	}), 3.0)
}

// BenchmarkSubscriptions measures the cost of a change of every key to one subscriber, and of the
// end of each subscription.
func BenchmarkSubscriptions(b *testing.B) {
	for _, n := range []int{400, 4000, 40_000} {
		for _, prefix := range []bool{false, true} {
			b.Run(fmt.Sprintf("keys=%d/prefix=%t", n, prefix), func(b *testing.B) {
				w, keys := newWorld(), numbered("key-", n)
				if prefix {
					w.subscribe("one", "key-", false)
				} else {
					for _, k := range keys {
						w.subscribe("one", k, true)
					}
				}
				for b.Loop() {
					w.count = 0
					w.put(keys...)
					w.tell(1 << 30)
					if w.count != n {
						b.Fatalf("%d notices of %d", w.count, n)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/key")
			})
		}
	}
}
