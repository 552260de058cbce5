package history

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/internal/causal"
)

// audit recomputes what a history maintains along with its keys and its vector.
func (h *History) audit() error {
	sum, marks := Sum{}, h.marks
	for key, held := range h.keys.All() {
		for path, e := range held.Prefix("") {
			sum = sum.Plus(entrySum(key, path, e))
		}
		if _, noted := h.marks.Get(key); noted != held.HasMarks() {
			return fmt.Errorf("key %q: has marks: %v, noted: %v", key, held.HasMarks(), noted)
		}
		marks = marks.Delete(key)
	}
	size := 0
	for d := range h.seen.All() {
		o := h.log.origins[d.Replica]
		switch {
		case o != nil && o.floor+uint64(len(o.events)) != d.N:
			return fmt.Errorf("log of %v: %d events from %d on, seen %d", d.Replica, len(o.events),
				o.floor, d.N)
		case o == nil && h.log.floor.Get(d.Replica) != d.N:
			return fmt.Errorf("log of %v: floor %d, seen %d", d.Replica, h.log.floor.Get(d.Replica),
				d.N)
		case o != nil:
			size += o.size
		}
	}
	if sum != h.sum || marks.Len() > 0 || size != h.log.size {
		return fmt.Errorf("fingerprint %x of %x, %d marks of keys that are not there, log of %d bytes of %d",
			h.sum, sum, marks.Len(), h.log.size, size)
	}
	return nil
}

// group is a few histories that exchange what they know.
type group struct {
	t    *testing.T
	r    *rand.Rand
	all  []*History
	next causal.Replica
}

func newGroup(t *testing.T, seed uint64, n int) *group {
	g := &group{t: t, r: rand.New(rand.NewPCG(seed, 1))}
	for range n {
		g.next++
		h := New(g.next, nil)
		g.all = append(g.all, &h)
	}
	return g
}

// put returns an update that replaces the element of a path, or removes it, or clears the key.
func (g *group) put() func(*Txn) error {
	key, path, how := fmt.Sprint("k", g.r.IntN(3)), fmt.Sprint("p", g.r.IntN(3)), g.r.IntN(5)
	return func(t *Txn) error {
		s := t.Get(key)
		if how == 0 {
			t.Clear(key)
			return nil
		}
		if e, ok := s.Get(path); ok {
			for l := range e.All() {
				s = s.Remove(path, l.Dot)
			}
		}
		if how > 1 {
			s = s.Insert(path, causal.Leaf{Dot: t.Dot(), Payload: fmt.Sprint(t.Stamp())})
		}
		t.Put(key, s)
		return nil
	}
}

// act lets one history do something, and checks all of what it maintains.
func (g *group) act() {
	i := g.r.IntN(len(g.all))
	h, o := g.all[i], g.all[g.r.IntN(len(g.all))]
	now := time.UnixMilli(g.r.Int64N(1000))
	switch g.r.IntN(9) {
	case 0, 1, 2:
		_, err := h.Update(now, nil, g.put())
		require.NoError(g.t, err)
		if g.r.IntN(2) == 0 {
			h.Take()
		}
	case 3, 4:
		h.Commit()
	case 5, 6:
		if d, ok := o.Since(h.seen); ok && o != h {
			for i, e := range d.Events {
				d.Events[i] = o.Fill(e.Event)
			}
			h.Commit()
			h.Apply(d)
		} else if o != h {
			h.Commit()
			h.Join(o.State())
		}
	case 7:
		h.Trim(h.seen.Meet(o.seen), nil, func(causal.Replica) bool { return true },
			g.r.IntN(1000))
	case 8: // another incarnation
		g.next++
		h.Commit()
		n := New(g.next, nil)
		n.Continue(h)
		h = &n
		g.all[i] = h
	}
	require.NoError(g.t, h.audit())
	for _, key := range h.UncopiedKeys(100) {
		require.NoError(g.t, CheckKey(key))
	}
}

// Whatever histories do and exchange, and in whatever pieces: what each maintains fits its state,
// and when all have seen the same, all hold the same.
func TestHistory_EqualVectorsMeanEqualStates(t *testing.T) {
	for seed := range uint64(300) {
		g := newGroup(t, seed, 3)
		for range 60 {
			g.act()
		}
		for range 2 {
			for _, h := range g.all {
				for _, o := range g.all {
					h.Commit()
					o.Commit()
					h.Join(o.State())
				}
			}
		}
		for _, h := range g.all {
			require.NoError(t, h.audit())
			require.True(t, h.seen.Equal(g.all[0].seen), "seed %d", seed)
			require.Equal(t, g.all[0].sum, h.sum, "seed %d", seed)
		}
	}
}

// A commit that panics changes nothing; opened again, its events are committed once.
func TestHistory_AnInterruptedCommitIsRepeated(t *testing.T) {
	for _, at := range []string{"before install", "after install"} {
		broken := false
		h := New(1, func(place string) {
			if place == at && !broken {
				broken = true
				panic(place)
			}
		})
		g := &group{t: t, r: rand.New(rand.NewPCG(1, 2))}
		_, err := h.Update(time.UnixMilli(1), nil, g.put())
		require.NoError(t, err)
		require.EqualValues(t, 1, h.Take())
		require.Panics(t, func() { h.Commit() })
		h.Reopen()
		h.Commit()
		require.EqualValues(t, 1, h.Own(), at)
		require.NoError(t, h.audit())
		require.False(t, h.Gathers())
	}
}

// The log loses first what all members have, except what answers under way continue from, and then,
// over its budget, the older half of the largest part [R17, R18].
func TestTrim_CutsWhatAllHaveAndThenTheLargestPart(t *testing.T) {
	h, o := New(1, nil), New(2, nil)
	update := func(h *History, times int) {
		for i := range times {
			_, err := h.Update(time.UnixMilli(1), nil, func(t *Txn) error {
				t.Put(fmt.Sprint("k", i), causal.Store{}.Insert("p", causal.Leaf{Dot: t.Dot()}))
				return nil
			})
			require.NoError(t, err)
			h.Take()
			h.Commit()
		}
	}
	update(&h, 8)
	update(&o, 2)
	d, ok := o.Since(h.Seen())
	require.True(t, ok)
	for i, e := range d.Events {
		d.Events[i] = o.Fill(e.Event)
	}
	h.Apply(d)
	trim := func(stable, keep causal.Vector, budget int) (cut uint64, from [2]uint64) {
		none := func(causal.Replica) bool { return false }
		cut = h.Trim(stable, []causal.Vector{keep}, none, budget)
		for i := range from {
			for ok := false; !ok; _, ok = h.Events(causal.Replica(i+1), from[i]) {
				from[i]++
			}
		}
		return cut, from
	}
	vector := causal.MakeVector
	cut, from := trim(vector(causal.Dot{Replica: 1, N: 3}), h.Seen(), 1<<20)
	require.Zero(t, cut)
	require.Equal(t, [2]uint64{4, 1}, from, "all have three events of replica 1")
	cut, from = trim(h.Seen(), vector(causal.Dot{Replica: 1, N: 5}), 1<<20)
	require.Zero(t, cut)
	require.Equal(t, [2]uint64{6, 1}, from, "an answer is of the fifth")
	cut, from = trim(causal.Vector{}, h.Seen(), h.LogBytes()-1)
	require.EqualValues(t, 2, cut)
	require.Equal(t, [2]uint64{8, 1}, from, "of three")
}
