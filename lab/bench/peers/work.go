//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/concord-go/concord/distributeddata"
)

// work is one workload. Its text is the name of a benchmark, and the arguments of the commands that
// members read.
type work struct {
	op      string // see ops
	kind    string // of value: counter, register or set, or one of kinds
	elems   int    // of a set
	keys    int    // taken in turn
	size    int    // bytes of an element or of a register's value
	callers int    // requests under way; 0 if none is answered
}

// The operations. All but the direct ones are messages to the replicator.
const (
	get            = "get"             // at Local
	update         = "update"          // answered, at Local
	majority       = "majority"        // an update, answered when a majority has it
	all            = "all"             // an update, answered when all have it
	spread         = "spread"          // updates; the time ends when both other members have them
	directGet      = "direct-get"      // a call of Concord
	directUpdate   = "direct-update"   // a call of Concord
	directMajority = "direct-majority" // a call of Concord
)

func (w work) String() string {
	return fmt.Sprintf("op=%s/kind=%s/elems=%d/keys=%d/size=%d/callers=%d", w.op, w.kind, w.elems,
		w.keys, w.size, w.callers)
}

// parseWork reads what String returns, with spaces in place of slashes, after the name of a
// command.
func parseWork(text string) (w work, err error) {
	_, err = fmt.Sscanf(text, "op=%s kind=%s elems=%d keys=%d size=%d callers=%d", &w.op, &w.kind,
		&w.elems, &w.keys, &w.size, &w.callers)
	if err != nil {
		return w, fmt.Errorf("work %q: %w", text, err)
	}
	if !w.everywhere() && w.maker() == nil {
		return w, fmt.Errorf("work %q: no such kind", text)
	}
	if w.keys < 1 || w.kind == "set" && w.elems < 1 ||
		(w.kind == "set" || w.kind == "register") && w.size < digits {
		return w, fmt.Errorf("work %q: needs keys, elements, and at least %d bytes", text, digits)
	}
	return w, nil
}

// arguments returns w as arguments of a command.
func (w work) arguments() string { return strings.ReplaceAll(w.String(), "/", " ") }

// group names the keys of w. Works of the same group use the same entries.
func (w work) group() string { return fmt.Sprintf("%s-%d-%d-%d", w.kind, w.elems, w.keys, w.size) }

func (w work) key(i int) string { return fmt.Sprintf("%s-%04d", w.group(), i) }

// direct reports whether w calls Concord without a message, which the others do not have.
func (w work) direct() bool { return strings.HasPrefix(w.op, "direct-") }

// writes reports whether w changes entries.
func (w work) writes() bool { return w.op != get && w.op != directGet }

// everywhere reports whether all systems have values of this kind.
func (w work) everywhere() bool {
	return slices.Contains([]string{"counter", "register", "set"}, w.kind)
}

// maker returns what makes the requests of a kind that only Concord measures, or nil.
func (w work) maker() func(*distributeddata.Replicator, work) requests {
	for _, k := range kinds {
		if k.name == w.kind {
			return k.open
		}
	}
	return nil
}

// manyKeys is the number of keys from which nothing waits until the other members have the updates:
// Pekko takes minutes.
const manyKeys = 100_000

// awaited reports whether a run ends when the other members have its updates.
func (w work) awaited() bool { return w.writes() && w.keys < manyKeys && w.everywhere() }

// grid returns the updates of a kind over numbers of keys, up to most, and of callers.
func grid(kind string, most int) (works []work) {
	for _, keys := range []int{1, 100, 1000, manyKeys} {
		w := work{op: directUpdate, kind: kind, keys: keys, callers: 64}
		switch {
		case keys > most:
			continue
		case !w.everywhere():
			works = append(works, w)
			continue
		case kind == "register":
			w.size = 100
		case kind == "set":
			w.elems, w.size = 10, digits
		}
		for _, op := range []string{update, directUpdate} {
			for _, callers := range []int{1, 64, 1000} {
				w.op, w.callers = op, callers
				works = append(works, w)
			}
		}
	}
	return works
}

// gridKinds returns all kinds of values, those of all systems first.
func gridKinds() []string {
	all := []string{"counter", "register", "set"}
	for _, k := range kinds {
		all = append(all, k.name)
	}
	return all
}

// gridNames returns the names of all grids.
func gridNames() (names []string) {
	for _, kind := range gridKinds() {
		for _, w := range grid(kind, manyKeys) {
			names = append(names, w.String())
		}
	}
	return names
}

// heaps returns the workloads after which the heap of an entry is measured. They make the entries.
func heaps() (works []work) {
	for _, size := range []int{100, 1000} {
		works = append(works, work{all, "register", 0, 20_000, size, 64})
	}
	return works
}

// cases returns all workloads in the order of a round.
func cases() (works []work) {
	counter := func(op string, keys, callers int) work {
		return work{op, "counter", 0, keys, 0, callers}
	}
	set := func(op string, elems, keys, callers int) work {
		return work{op, "set", elems, keys, digits, callers}
	}
	for _, callers := range []int{1, 4, 16, 64, 256, 1000} {
		works = append(works, counter(get, 1, callers), counter(update, 1, callers),
			counter(majority, 1, callers))
	}
	for _, callers := range []int{1, 64, 1000} {
		works = append(works, set(update, 1000, 1, callers))
	}
	works = append(works, counter(directGet, 1, 1), set(directGet, 1000, 1, 1))
	for _, callers := range []int{1, 64} {
		works = append(works, counter(directUpdate, 1, callers),
			counter(directMajority, 1, callers))
	}
	for _, keys := range []int{10, 1000} {
		works = append(works, counter(get, keys, 64), counter(update, keys, 64))
	}
	for _, keys := range []int{1, 10, 100, 1000} {
		works = append(works, counter(spread, keys, 64))
	}
	works = append(works, counter(spread, 100, 0), set(spread, 10, 100, 64),
		set(spread, 10, 100, 0))
	for _, size := range []int{10, 100, 1000, 10_000} {
		works = append(works, work{update, "register", 0, 1, size, 64},
			work{majority, "register", 0, 1, size, 64})
	}
	return works
}
