package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-go/concord/internal/causal"
)

// The specification: what a replica shows, as a function of the updates that are readable in it and
// of the happened-before relation. It does not use vectors, atoms, marks, logs or messages. Every
// update that changes anything also adds its name to a set, so the updates of a replica can be read
// from values. An update happened before another if the replica that made the other showed it then.

// names is a set of updates by their numbers. It is never modified once it is shared.
type names []uint64

func (s names) has(i int) bool { return i>>6 < len(s) && s[i>>6]>>(i&63)&1 == 1 }

func (s names) with(i int) names {
	out := append(make(names, 0, max(len(s), i>>6+1)), s...)
	for len(out) <= i>>6 {
		out = append(out, 0)
	}
	out[i>>6] |= 1 << (i & 63)
	return out
}

func (s names) join(o names) names {
	if o.within(s) {
		return s
	}
	out := make(names, max(len(s), len(o)))
	copy(out, s)
	for i, x := range o {
		out[i] |= x
	}
	return out
}

func (s names) within(o names) bool { return len(s.without(o)) == 0 }

// without returns the elements of s that are not in o, without trailing zeros.
func (s names) without(o names) (out names) {
	for i, x := range s {
		if i < len(o) {
			x &^= o[i]
		}
		if x != 0 {
			for len(out) <= i {
				out = append(out, 0)
			}
			out[i] = x
		}
	}
	return out
}

func (s names) all() (out []int) {
	for i, x := range s {
		for b := range 64 {
			if x>>b&1 == 1 {
				out = append(out, i<<6+b)
			}
		}
	}
	return out
}

func (s names) String() string { return fmt.Sprint(s.all()) }

// deed is one update as the specification sees it.
type deed struct {
	id    int
	by    causal.Replica // of two registers written at one time the larger wins
	knew  names          // what its replica showed before
	does  []effectOf
	never bool // it was never made
	told  bool // its caller has been answered before the commit
	dot   causal.Dot
}

// effectOf is the effect of an update on a cell of a value: an element of a set, a key of a map, or
// a whole counter.
type effectOf struct {
	key, cell string
	put       bool // adds something
	reset     bool // removes what it knew in the cell, and in those below it
	over      bool // a put that removes the known puts to its cell
	text      string
	amount    int64
	stamp     uint64 // the time of the update, raised above the stamps of the puts that were there
}

// put is an effect that adds something at a cell.
type put struct {
	*deed
	i int
}

func (p put) effect() *effectOf { return &p.does[p.i] }

// before reports whether p was there when q had its effect j.
func (p put) before(q *deed, j int) bool {
	if p.deed == q {
		return p.i < j
	}
	return q.knew.has(p.id)
}

// takes reports whether x removes what y put, if it knew of it.
func (x *effectOf) takes(y *effectOf) bool {
	switch {
	case x.key != y.key:
		return false
	case x.reset:
		return x.cell == "" || x.cell == y.cell || strings.HasPrefix(y.cell, x.cell+"/")
	}
	return x.over && x.cell == y.cell
}

// chronicle is everything that was done in a history.
type chronicle struct {
	deeds []*deed
	of    map[string]names             // the updates that change a key
	memo  map[string]map[string]string // cached results for a key and its updates
}

func newChronicle() *chronicle {
	return &chronicle{of: map[string]names{}, memo: map[string]map[string]string{}}
}

// add adds an update to the history, and stamps its puts.
func (h *chronicle) add(d *deed) {
	d.id = len(h.deeds)
	h.deeds = append(h.deeds, d)
	for i := range d.does {
		x := &d.does[i]
		h.of[x.key] = h.of[x.key].with(d.id)
		if !x.put {
			continue
		}
		for _, p := range h.visible(x.key, d.knew, d, i) {
			if e := p.effect(); e.cell == x.cell {
				x.stamp = max(x.stamp, e.stamp+1)
			}
		}
	}
}

// visible returns the puts to a key that are not removed: those of the known updates, and of the
// first effects of one more.
func (h *chronicle) visible(key string, known names, more *deed, effects int) (out []put) {
	deeds := make([]*deed, 0, 16)
	for i, x := range h.of[key] {
		if i >= len(known) {
			break
		}
		for b, x := 0, x&known[i]; x != 0; b, x = b+1, x>>1 {
			if x&1 == 1 {
				deeds = append(deeds, h.deeds[i<<6+b])
			}
		}
	}
	count := func(d *deed) int {
		if d == more {
			return effects
		}
		return len(d.does)
	}
	if more != nil && !known.has(more.id) {
		deeds = append(deeds, more)
	}
	taken := func(p put) bool {
		for _, q := range deeds {
			for j := range count(q) {
				if q.does[j].takes(p.effect()) && p.before(q, j) {
					return true
				}
			}
		}
		return false
	}
	for _, d := range deeds {
		for i := range count(d) {
			if p := (put{d, i}); d.does[i].put && d.does[i].key == key && !taken(p) {
				out = append(out, p)
			}
		}
	}
	return out
}

// says returns what a key shows given the known updates: one line for each nonempty cell, in order.
func (h *chronicle) says(key string, known names) string {
	about := make([]byte, 0, 8*len(known))
	for i, x := range h.of[key] {
		if i < len(known) {
			about = fmt.Appendf(about, "%x ", x&known[i])
		}
	}
	memo := h.memo[key]
	if memo == nil {
		memo = map[string]string{}
		h.memo[key] = memo
	}
	text, ok := memo[string(about)]
	if ok {
		return text
	}
	cells := map[string][]put{}
	for _, p := range h.visible(key, known, nil, 0) {
		cells[p.effect().cell] = append(cells[p.effect().cell], p)
	}
	shows := map[string]string{}
	for cell, puts := range cells {
		if t, ok := kinds[key[0]].spec(puts); ok {
			shows[cell] = t
		}
	}
	text = lines(key, shows)
	memo[string(about)] = text
	return text
}

// keys returns the keys that were ever changed, in order.
func (h *chronicle) keys() []string { return slices.Sorted(maps.Keys(h.of)) }

func lines(key string, cells map[string]string) string {
	var b strings.Builder
	for _, c := range slices.Sorted(maps.Keys(cells)) {
		fmt.Fprintf(&b, "%s/%s=%s\n", key, c, cells[c])
	}
	return b.String()
}

// These functions return what a cell shows for its visible puts, of which there is at least one.

func present([]put) (string, bool) { return "1", true }

func unanimous(puts []put) (string, bool) {
	return "1", !slices.ContainsFunc(puts, func(p put) bool { return p.effect().text == "no" })
}

func sum(puts []put) (string, bool) {
	var n int64
	for _, p := range puts {
		n += p.effect().amount
	}
	return strconv.FormatInt(n, 10), true
}

func last(puts []put) (string, bool) {
	return slices.MaxFunc(puts, func(a, b put) int {
		return cmp.Or(cmp.Compare(a.effect().stamp, b.effect().stamp), cmp.Compare(a.by, b.by))
	}).effect().text, true
}

func every(puts []put) (string, bool) {
	var texts []string
	for _, p := range puts {
		texts = append(texts, p.effect().text)
	}
	slices.Sort(texts)
	return strings.Join(slices.Compact(texts), " "), true
}

func largest(puts []put) (string, bool) {
	return strconv.FormatInt(slices.MaxFunc(puts, byAmount).effect().amount, 10), true
}

func smallest(puts []put) (string, bool) {
	return strconv.FormatInt(slices.MinFunc(puts, byAmount).effect().amount, 10), true
}

func byAmount(a, b put) int { return cmp.Compare(a.effect().amount, b.effect().amount) }

// merged returns the union of vectors given as numbers by replica.
func merged(puts []put) (string, bool) {
	of := map[string]uint64{}
	for _, p := range puts {
		for word := range strings.FieldsSeq(p.effect().text) {
			r, n, _ := strings.Cut(word, ":")
			v, _ := strconv.ParseUint(n, 10, 64)
			of[r] = max(of[r], v)
		}
	}
	return vectorText(of), true
}

func vectorText(of map[string]uint64) string {
	var words []string
	for _, r := range slices.Sorted(maps.Keys(of)) {
		words = append(words, fmt.Sprintf("%s:%d", r, of[r]))
	}
	return strings.Join(words, " ")
}
