package crdt

import (
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/hosted"
)

// What the replicator of package distributeddata needs of values is in package hosted.
func init() {
	hosted.Values.Writer = func(d causal.Dot, stamp uint64) (any, func()) {
		w := &Writer{dot: d, stamp: stamp, hosted: true}
		return w, func() { w.done = true }
	}
	hosted.Values.Held = func(p any) bool { _, ok := heldBy(p); return ok }
	hosted.Values.Bind = func(p any, s causal.Store, seen causal.Vector) (bool, error) {
		h, ok := heldBy(p)
		if !ok {
			return false, nil
		}
		bindTo(h, view{store: s, seen: seen, line: loaded})
		return true, checkHeld(h)
	}
	hosted.Values.Save = saveHeld
	hosted.Values.Saved = func(p any, s causal.Store, seen causal.Vector) {
		if h, ok := heldBy(p); ok {
			bindTo(h, view{store: s, seen: seen, line: loaded})
		}
	}
	hosted.Values.LoadOwn = func(v hosted.Own, s causal.Store) error { return joinOwn(v, s, "") }
	hosted.Values.SaveOwn = func(w any, s causal.Store, v hosted.Own) (causal.Store, error) {
		return putOwn(w.(*Writer), s, "", v)
	}
	hosted.Values.TypeName = typeName
	hosted.Values.Encoder = func(p any) any { return p.(interface{ encoder() any }).encoder() }
}

func saveHeld(base causal.Store, p any) (causal.Store, bool, error) {
	h, ok := heldBy(p)
	if !ok {
		return base, false, nil
	}
	at, err := gathered(h)
	if err != nil {
		return base, true, err
	}
	if at.line != loaded {
		return base, true, errForeign
	}
	return at.store, true, nil
}

func typeName(p any) string {
	h, ok := heldBy(p)
	if !ok {
		return causal.Tag(ownTag[0]).String()
	}
	name := h.tag().String()
	if m, ok := h.(interface{ valueName() string }); ok {
		name += m.valueName()
	}
	return name
}
