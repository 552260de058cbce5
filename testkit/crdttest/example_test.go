package crdttest_test

import (
	"testing"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/testkit/crdttest"
)

// tags is a replicated type: a record of two types of package crdt.
type tags = crdt.Record[struct {
	Name crdt.MaxRegister[int64]
	All  crdt.ORSet[string]
}]

// The laws of a replicated type are checked by one call. Change makes one random change and says
// what it did, for the report of a failure.
func Example() {
	_ = func(t *testing.T) { // func TestTags(t *testing.T)
		crdttest.Run(t, crdttest.Type[tags]{
			Change: func(d *crdttest.Draw, w *crdt.Writer, v *tags) []crdttest.Effect {
				e := d.Letter("tag")
				v.V.All.Add(w, e)
				return crdttest.Put(e, "added")
			},
		})
	}
}
