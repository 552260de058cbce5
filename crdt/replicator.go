package crdt

import "github.com/concord-go/concord/internal/causal"

// The functions of this file are the interface between values and the replicator of package
// distributeddata, and are not for applications. They are exported because that package calls them;
// except for the two that only describe a type, their parameters have types of internal packages.

// Host is not for applications: package distributeddata calls it. It returns the writer of event d
// with the hybrid timestamp stamp, and a function that ends the writer.
func Host(d causal.Dot, stamp uint64) (w *Writer, end func()) {
	w = &Writer{dot: d, stamp: stamp, hosted: true}
	return w, func() { w.done = true }
}

// Load is not for applications: package distributeddata calls it. It returns the value of type T
// stored in s. empty supplies the codecs. The error is ErrType or, for a user-defined type, the
// error of its Decode.
func Load[T Value[T]](empty T, s causal.Store, seen causal.Vector) (T, error) {
	v := empty
	h, ok := heldBy(&v)
	if !ok {
		return loadOwn(empty, s, "")
	}
	bindTo(h, view{store: s, seen: seen, line: loaded})
	return v, checkHeld(h)
}

// Save is not for applications: package distributeddata calls it. It returns the store that holds
// *v, which the update of w made from the value that Load returned for base.
func Save[T Value[T]](w *Writer, base causal.Store, v *T) (causal.Store, error) {
	h, ok := heldBy(v)
	if !ok {
		return saveOwn(w, base, "", *v)
	}
	at, err := gathered(h)
	if err != nil {
		return base, err
	}
	if at.line != loaded {
		return base, ErrForeign
	}
	return at.store, nil
}

// Saved is not for applications: package distributeddata calls it. After Save has put *v into s, it
// makes *v the value that Load returns from s once seen covers the update. It leaves a user-defined
// type unchanged.
func Saved[T Value[T]](v *T, s causal.Store, seen causal.Vector) {
	if h, ok := heldBy(v); ok {
		bindTo(h, view{store: s, seen: seen, line: loaded})
	}
}

// Shareable is not for applications: package distributeddata calls it. It reports whether type T
// belongs to this package, so that changing a copy of a value does not change the original. A
// user-defined type may hold a map.
func Shareable[T Value[T]]() bool {
	_, ok := heldBy(new(T))
	return ok
}

// TypeName is not for applications: package distributeddata calls it. It returns the name by which
// a store identifies the type of a value, such as "ORSet[string]" or "ORMap[string]PNCounter". All
// user-defined types have one name.
func TypeName[T Value[T]](empty T) string {
	h, ok := heldBy(&empty)
	if !ok {
		return causal.Tag(ownTag[0]).String()
	}
	name := h.tag().String()
	if m, ok := h.(interface{ valueName() string }); ok {
		name += m.valueName()
	}
	return name
}
