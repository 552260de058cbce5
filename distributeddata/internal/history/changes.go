package history

import "github.com/concord-go/concord/internal/pmap"

// Changes calls f for each key that begins with prefix and whose value may differ between was and
// now, until f returns false. Its cost is proportional to the changes below the prefix. The keys
// alias the maps.
func Changes(was, now Keys, prefix string, f func(key string, was, now Held) bool) {
	same := func(a, b *Held) bool { return a == b }
	pmap.DiffPrefix(was.m, now.m, prefix, same, func(key string, a *Held, inA bool, b *Held,
		inB bool) bool {
		var x, y Held
		if inA {
			x = *a
		}
		if inB {
			y = *b
		}
		return x.SameValue(y.Store) || f(key, x, y)
	})
}
