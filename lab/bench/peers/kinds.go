//go:build linux

package main

import (
	"context"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// profile is a record.
type profile struct {
	Name crdt.LWWRegister[string]
	Tags crdt.ORSet[string]
}

// kinds are the types of values that only Concord measures, in the order of the table. A set or a
// map has ten elements.
var kinds = []struct {
	name string
	open func(dd *distributeddata.Replicator, w work) requests
}{
	{"gcounter", changes(crdt.GCounter{}, func(w *crdt.Writer, v *crdt.GCounter, _ int) {
		v.Add(w, 1)
	})},
	{"boundedcounter", changes(crdt.BoundedCounter{}, func(w *crdt.Writer, v *crdt.BoundedCounter,
		_ int) {
		v.Add(w, 1)
	})},
	{"ewflag", changes(crdt.EWFlag{}, func(w *crdt.Writer, v *crdt.EWFlag, i int) {
		if i%2 == 0 {
			v.Enable(w)
		} else {
			v.Disable(w)
		}
	})},
	{"dwflag", changes(crdt.DWFlag{}, func(w *crdt.Writer, v *crdt.DWFlag, i int) {
		if i%2 == 0 {
			v.Enable(w)
		} else {
			v.Disable(w)
		}
	})},
	{"maxregister", changes(crdt.MaxRegister[int64]{}, func(w *crdt.Writer,
		v *crdt.MaxRegister[int64], i int) {
		v.Set(w, int64(i))
	})},
	{"minregister", changes(crdt.MinRegister[int64]{}, func(w *crdt.Writer,
		v *crdt.MinRegister[int64], i int) {
		v.Set(w, -int64(i))
	})},
	{"mvregister", changes(crdt.MVRegister[string]{}, func(w *crdt.Writer,
		v *crdt.MVRegister[string], i int) {
		v.Set(w, tenth(i))
	})},
	{"gset", changes(crdt.GSet[string]{}, func(w *crdt.Writer, v *crdt.GSet[string], i int) {
		v.Add(w, tenth(i))
	})},
	{"rwset", changes(crdt.RWSet[string]{}, func(w *crdt.Writer, v *crdt.RWSet[string], i int) {
		v.Add(w, tenth(i))
	})},
	{"lwwmap", changes(crdt.LWWMap[string, string]{}, func(w *crdt.Writer,
		v *crdt.LWWMap[string, string], i int) {
		v.Set(w, tenth(i), tenth(i/10))
	})},
	{"pncountermap", changes(crdt.PNCounterMap[string]{}, func(w *crdt.Writer,
		v *crdt.PNCounterMap[string], i int) {
		v.Add(w, tenth(i), 1)
	})},
	{"ormultimap", changes(crdt.ORMultiMap[string, string]{}, func(w *crdt.Writer,
		v *crdt.ORMultiMap[string, string], i int) {
		v.Add(w, tenth(i), tenth(i/10))
	})},
	{"ormap", changes(crdt.ORMap[string, crdt.PNCounter]{}, func(w *crdt.Writer,
		v *crdt.ORMap[string, crdt.PNCounter], i int) {
		v.Update(w, tenth(i), func(c *crdt.PNCounter) { c.Add(w, 1) })
	})},
	{"record", changes(crdt.Record[profile]{}, func(w *crdt.Writer, v *crdt.Record[profile],
		i int) {
		if i%2 == 0 {
			v.V.Name.Set(w, tenth(i/2))
		} else {
			v.V.Tags.Add(w, tenth(i/2))
		}
	})},
}

var tens = elementsOf(work{elems: 10, size: digits})

// tenth returns one of ten elements.
func tenth(i int) string { return tens[i%len(tens)] }

// changes returns how the direct updates of a type are made. Update i is the one numbered i/keys of
// its entry.
func changes[T crdt.Value[T]](empty T, change func(w *crdt.Writer, v *T, i int),
) func(*distributeddata.Replicator, work) requests {
	return func(dd *distributeddata.Replicator, w work) requests {
		ctx := context.Background()
		keys := make([]distributeddata.Key[T], w.keys)
		for i := range keys {
			keys[i] = distributeddata.NewKey(w.key(i), empty)
		}
		update := func(i int, at distributeddata.Consistency) error {
			_, err := keys[i%w.keys].Update(ctx, dd, func(wr *crdt.Writer, v *T) error {
				change(wr, v, i/w.keys)
				return nil
			}, at)
			return err
		}
		return requests{
			direct: func(i int) error { return update(i, distributeddata.Local) },
			settle: func() error { return update(0, distributeddata.All) },
		}
	}
}
