package membership

import (
	"fmt"
	"time"

	"github.com/concord-go/concord/internal/sim"
)

// world is one seeded history of a cluster on a provider that behaves like Proto.Actor's: a member
// never lists a dropped id again, views are one-sided, and a member sends only to listed members,
// unless the protocol finds their address.
type world struct {
	*sim.World
	places       []*place
	byAddress    map[string]*place
	incarnations int
	store        *store        // nil if members look for each other
	round        time.Duration // of providers
	misses       int           // number of rounds after which a silent member is dropped
	ends         []ending
	yields       map[request]int // requests that have reached the intended incarnation
	slow         float64         // probability that a process starts its next incarnation slowly
	// The time until which the giver of a permit stays crashed, and the split triggered when the
	// first incarnation ends.
	hunted  time.Duration
	resplit func()
	tuning  Tuning
	whole   time.Duration     // when the last cut ends
	sides   string            // of the last split
	givers  map[*process]bool // of permits
}

// place is an address at which the incarnations of one process run, one after another.
type place struct {
	w           *world
	i           int
	incarnation *process // nil while none runs
	down        bool     // after a crash or a leave, or before the first start
	was         int      // number of incarnations so far
	pid         int      // number of processes that have ended
	ends        []time.Duration
	last        ending // if there has been no incarnation since
}

// ending is the end of an incarnation by the protocol.
type ending struct {
	at    time.Duration
	place int
	cause error
	giver uint64 // of the permit
}

// storePlace stands for the provider's store in links of the network.
const storePlace = 1000

func newWorld(s *sim.World, members int) *world {
	w := &world{World: s, misses: 1, round: 500 * time.Millisecond, yields: map[request]int{},
		byAddress: map[string]*place{}, givers: map[*process]bool{}}
	w.Faults = sim.Faults{Delay: time.Millisecond, Jitter: 5 * time.Millisecond}
	for i := range members {
		p := &place{w: w, i: i, down: true}
		w.places, w.byAddress[w.addressOf(i)] = append(w.places, p), p
	}
	w.Can("start", w.at(func(p *place, _ sim.Args) { p.start() }))
	w.Can("crash", w.at(func(p *place, a sim.Args) { p.crash(); p.startIn(a.Span(1)) }))
	w.Can("leave", w.at(func(p *place, a sim.Args) { p.leave(); p.startIn(a.Span(1)) }))
	w.Can("freeze", w.at(func(p *place, a sim.Args) { p.freeze(a.Span(1)) }))
	w.Can("link", w.link)
	w.Can("split", w.split)
	w.Can("drop", w.drop)
	w.Can("hunt", func(a sim.Args) { w.hunted = w.Elapsed() + a.Span(0) })
	w.Can("resplit", func(a sim.Args) { w.resplit = func() { w.split(a) } })
	return w
}

// at returns an act whose first word is a place.
func (w *world) at(do func(*place, sim.Args)) func(sim.Args) {
	return func(a sim.Args) {
		if i := a.Int(0, len(w.places)); !w.Failed() {
			do(w.places[i], a)
		}
	}
}

// start starts the first n places, within the first second.
func (w *world) start(n int) {
	for _, p := range w.places[:n] {
		w.After(w.Span("boot", 0, time.Second), p.start)
	}
}

// link cuts one or both directions between two places.
func (w *world) link(a sim.Args) {
	x, y, d := a.Int(0, len(w.places)), a.Int(1, len(w.places)), a.Span(3)
	w.cut(x, y, d)
	if a.Word(2) == "both" {
		w.cut(y, x, d)
	}
}

func (w *world) cut(from, to int, d time.Duration) {
	w.Cut(from, to)
	w.whole = max(w.whole, w.Elapsed()+d)
	w.After(d, func() { w.Mend(from, to) })
}

// split cuts places with different letters from each other; the last letter is the side of the
// store.
func (w *world) split(a sim.Args) {
	sides, d := a.Word(0), a.Span(1)
	if len(sides) != len(w.places)+1 {
		a.Fail("a side for each place and the store")
		return
	}
	number := func(i int) int {
		if i == len(w.places) {
			return storePlace
		}
		return i
	}
	w.sides = sides[:len(w.places)]
	for i := range sides {
		for j := range sides {
			if i != j && sides[i] != sides[j] {
				w.cut(number(i), number(j), d)
			}
		}
	}
}

// drop hides one place from the provider of another for a while.
func (w *world) drop(a sim.Args) {
	x, y, d := a.Int(0, len(w.places)), a.Int(1, len(w.places)), a.Span(2)
	if l := w.places[x].incarnation; l != nil && x != y {
		l.blind[y] = w.Elapsed() + d
	}
}

// running returns the current incarnations, including those of frozen processes.
func (w *world) running() (out []*process) {
	for _, p := range w.places {
		if p.incarnation != nil {
			out = append(out, p.incarnation)
		}
	}
	return out
}

// oneView reports whether all running members list exactly the running members, in one order of
// age.
func (w *world) oneView() bool {
	all := w.running()
	for _, p := range w.places {
		if p.incarnation == nil && !p.down {
			return false // between two incarnations
		}
	}
	for _, l := range all {
		v := l.core.view
		if v == nil || v.Removed || len(v.Members) != len(all) || v.Hash != all[0].core.view.Hash ||
			len(v.ByAge("")) != len(all) {
			return false
		}
		for _, o := range all {
			if _, ok := v.Find(o.id); !ok {
				return false
			}
		}
	}
	return true
}

// told returns the views of all members, for a failure report.
func (w *world) told() string {
	var out []string
	for _, l := range w.running() {
		out = append(out, l.String())
	}
	return fmt.Sprint(out)
}

func (w *world) addressOf(i int) string { return fmt.Sprintf("p%02d:1", i) }

func (w *world) placeAt(address string) *place {
	return w.byAddress[address]
}

// reach reports whether two places can communicate in both directions.
func (w *world) reach(a, b int) bool { return a == b || !w.IsCut(a, b) && !w.IsCut(b, a) }
