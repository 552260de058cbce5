package core

import (
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/pmap"
)

// Changes calls f, until it returns false, for each key that begins with prefix and may hold another value
// in now than in was. It costs as much as what changed below the prefix. The keys alias the maps.
func Changes(was, now Keys, prefix string, f func(key string, was, now causal.Store) bool) {
	same := func(a, b *Held) bool { return a == b }
	pmap.DiffPrefix(was.m, now.m, prefix, same, func(key string, a *Held, inA bool, b *Held, inB bool) bool {
		var x, y causal.Store
		if inA {
			x = a.Store
		}
		if inB {
			y = b.Store
		}
		return x.SameValue(y) || f(key, x, y)
	})
}
