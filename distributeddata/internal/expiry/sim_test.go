package expiry_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/concord-go/concord/distributeddata/internal/expiry"
)

// The simulation has members whose clocks differ by up to the skew. They use entries, lose
// messages, are cut off from each other, and hang. They replicate a set of atoms, some of which
// have been removed: the simplest structure with the property of R23 that a delete removes what it
// has observed.

type atom struct {
	key   string
	stamp bool // otherwise it is content
	use   int64
}

type node struct {
	id    string
	clock int64 // offset from the true time
	table *expiry.Table
	has   map[int]bool // known atoms; true: live
	hangs bool
}

// used is a use of an existing entry, at the true time.
type used struct {
	at    int64
	stamp int // the atom that records it
}

type world struct {
	t     *testing.T
	rng   *rand.Rand
	now   int64
	atoms []atom
	nodes []*node
	group []int // by node: nodes of one group reach each other
	uses  map[string][]used
	loss  float64

	deleted, touched int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: 1_000_000,
		uses: map[string][]used{}, loss: 0.3}
	n := 2 + w.rng.IntN(4)
	w.group = make([]int, n)
	for i := range n {
		w.nodes = append(w.nodes, &node{id: fmt.Sprint("m", i), clock: w.rng.Int64N(skew + 1),
			has: map[int]bool{}, table: expiry.New(expiry.Config{Skew: skew, Turn: turn})})
	}
	w.views()
	return w
}

// views updates the view of every member.
func (w *world) views() {
	for i, n := range w.nodes {
		var others []string
		for j, o := range w.nodes {
			if i != j && w.group[i] == w.group[j] {
				others = append(others, o.id)
			}
		}
		n.table.View(n.id, others)
	}
}

// entry returns the live atoms of an entry at a node, content and stamps, with the merged use and
// the newest stamp.
func (w *world) entry(n *node, key string) (content, stamps []int, u expiry.Use, newest int) {
	newest = -1
	for id := range slices.Values(slices.Sorted(maps.Keys(n.has))) {
		switch a := w.atoms[id]; {
		case !n.has[id] || a.key != key:
		case !a.stamp:
			content = append(content, id)
		default:
			stamps = append(stamps, id)
			if u = u.Merge(expiry.Use{At: a.use}); u.At == a.use {
				newest = id
			}
		}
	}
	return content, stamps, u, newest
}

func (w *world) add(n *node, a atom) int {
	w.atoms = append(w.atoms, a)
	id := len(w.atoms) - 1
	n.has[id] = true
	return id
}

// tell updates the table of a node with the content of an entry.
func (w *world) tell(n *node, key string) {
	content, stamps, u, _ := w.entry(n, key)
	if len(content)+len(stamps) == 0 {
		n.table.Drop(key)
		return
	}
	n.table.Put(w.now+n.clock, key, u.At, ttl)
}

// use reads or writes an entry at a node.
func (w *world) use(n *node, key string, write bool) {
	content, stamps, u, newest := w.entry(n, key)
	if len(content) == 0 && !write {
		return
	}
	if write {
		w.add(n, atom{key: key})
	}
	if now := w.now + n.clock; len(content) == 0 || u.Stale(now, ttl, skew) {
		for _, id := range stamps {
			n.has[id] = false
		}
		newest = w.add(n, atom{key: key, stamp: true, use: now})
		w.touched++
	}
	w.uses[key] = append(w.uses[key], used{w.now, newest})
	w.tell(n, key)
	for _, o := range w.nodes {
		if w.rng.Float64() > w.loss {
			w.send(n, o)
		}
	}
}

// send sends o everything that n has seen, if n reaches o.
func (w *world) send(n, o *node) {
	if w.group[slices.Index(w.nodes, n)] != w.group[slices.Index(w.nodes, o)] {
		return
	}
	keys := map[string]bool{}
	for id, live := range n.has {
		was, known := o.has[id]
		if !known || was && !live {
			o.has[id] = live
			keys[w.atoms[id].key] = true
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		w.tell(o, key)
	}
}

// expire carries out what is due at a node.
func (w *world) expire(n *node) {
	for _, d := range n.table.Due(w.now+n.clock, 100, nil) {
		content, stamps, u, _ := w.entry(n, d.Key)
		switch {
		case u.At != d.Use:
			w.t.Fatalf("%d: the table of %s has stamp %d of %s, which says %d", w.now, n.id, d.Use,
				d.Key, u.At)
		case d.Use == 0:
			w.add(n, atom{key: d.Key, stamp: true, use: w.now + n.clock})
		default:
			w.observed(n, d.Key)
			for _, id := range append(content, stamps...) {
				n.has[id] = false
			}
			w.deleted += len(content)
		}
		w.tell(n, d.Key)
		for _, o := range w.nodes {
			if w.rng.Float64() > w.loss {
				w.send(n, o)
			}
		}
	}
}

// observed fails if a node deletes an entry within its time to live after a use that the node knows
// of.
func (w *world) observed(n *node, key string) {
	for _, u := range w.uses[key] {
		if _, heard := n.has[u.stamp]; heard && w.now < u.at+ttl {
			w.t.Fatalf("%d: %s deletes %s, which was used at %d", w.now, n.id, key, u.at)
		}
	}
}

// step advances the time. If busy, one random event happens.
func (w *world) step(busy bool) {
	w.now += w.rng.Int64N(20)
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	key := fmt.Sprint("k", w.rng.IntN(5))
	switch p := w.rng.IntN(100); {
	case !busy:
	case p < 15:
		w.use(n, key, false)
	case p < 20:
		w.use(n, key, true)
	case p < 22: // by a program without expiry
		w.add(n, atom{key: key})
		w.tell(n, key)
	case p < 23: // by a wrong clock
		w.add(n, atom{key: key, stamp: true, use: w.now * 1000})
		w.tell(n, key)
	case p < 25:
		for i := range w.group {
			w.group[i] = w.rng.IntN(2)
		}
		w.views()
	case p < 28:
		clear(w.group)
		w.views()
	case p < 30:
		n.hangs = !n.hangs
	}
	for _, n := range w.nodes {
		if !n.hangs {
			w.expire(n)
		}
	}
	w.send(n, w.nodes[w.rng.IntN(len(w.nodes))])
}

// No entry is deleted within its time to live after a use that the member has heard of. After the
// last use all entries are deleted, and forgotten by all members, in time, even if all members but
// one hang.
func TestSimulation(t *testing.T) {
	deleted, touched := 0, 0
	for seed := range uint64(60) {
		w := newWorld(t, seed)
		for range 2000 {
			w.step(true)
		}
		clear(w.group)
		w.views()
		for _, n := range w.nodes {
			n.hangs = true
		}
		w.nodes[w.rng.IntN(len(w.nodes))].hangs = false
		quiet := w.now
		bound := int64(ttl + ttl/4 + 2*skew + len(w.nodes)*turn + 1000)
		// Content that comes back without its stamp, which a delete elsewhere has removed, is given
		// a new stamp.
		bound += bound
		for w.now < quiet+bound {
			w.step(false)
		}
		for _, n := range w.nodes {
			for id, live := range n.has {
				if live {
					t.Fatalf("seed %d: %s still has %+v, %d after the last use", seed, n.id,
						w.atoms[id], w.now-quiet)
				}
			}
			if n.table.Len() != 0 {
				t.Fatalf("seed %d: the table of %s still has entries", seed, n.id)
			}
		}
		deleted, touched = deleted+w.deleted, touched+w.touched
	}
	if deleted < 1000 || touched < 1000 {
		t.Fatalf("%d deletes and %d stamps: the simulation does nothing", deleted, touched)
	}
}
