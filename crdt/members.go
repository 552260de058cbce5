package crdt

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/concord-go/concord/internal/causal"
)

// This file has the common part of the sets: the atoms at an element's path decide whether the
// element is in the set.

// present is the rule of sets in which any atom means that the element is in the set.
func present(causal.Entry) bool { return true }

// agreed is the rule of remove-wins types: no atom records a removal.
func agreed(e causal.Entry) bool {
	for l := range e.All() {
		if l.Payload == causal.Gone {
			return false
		}
	}
	return true
}

// members yields the elements of the set in the order of their encoding. It skips bytes that do not
// decode, which only a peer with another codec can have written.
func members[E any](v view, c elem[E], t causal.Tag, in func(causal.Entry) bool) iter.Seq[E] {
	return func(yield func(E) bool) {
		base := string(v.base(nil, t))
		for path, at := range v.store.Prefix(base) {
			if !in(at) {
				continue
			}
			if e, err := c.decode([]byte(path[len(base):])); err == nil && !yield(e) {
				return
			}
		}
	}
}

// newMembers yields, in order, the elements that are in the set and were not in old.
func newMembers[E any](old, v view, c elem[E], t causal.Tag,
	in func(causal.Entry) bool) iter.Seq[E] {
	v, old = together(v, old)
	return func(yield func(E) bool) {
		base := string(v.base(nil, t))
		causal.Diff(old.store, v.store, func(path string, was causal.Entry, wasThere bool,
			is causal.Entry, isThere bool) bool {
			rest, ok := strings.CutPrefix(path, base)
			if !ok || !isThere || !in(is) || wasThere && in(was) {
				return true
			}
			e, err := c.decode([]byte(rest))
			return err != nil || yield(e)
		})
	}
}

// text lists elements in braces.
func text[E any](elems iter.Seq[E]) string {
	var b strings.Builder
	for e := range elems {
		fmt.Fprintf(&b, " %v", e)
	}
	return "{" + strings.TrimPrefix(b.String(), " ") + "}"
}

// jsonArray lists elements as JSON.
func jsonArray[E any](elems iter.Seq[E]) ([]byte, error) {
	out := []byte{'['}
	for e := range elems {
		b, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		out = append(separated(out), b...)
	}
	return append(out, ']'), nil
}
