package crdt_test

import (
	"testing"

	"github.com/concord-go/concord/crdt"
)

// TestGolden_Types covers the types added after TestGolden.
func TestGolden_Types(t *testing.T) {
	now := func() uint64 { return 1_700_000_000_000 }
	alice, bob := crdt.NewReplicaWithClock(0xa11ce, now), crdt.NewReplicaWithClock(0xb0b, now)

	var g, g2 crdt.GSet[string]
	g.Add(alice.Writer(), "a", "b")
	g2.Add(bob.Writer(), "b", "c")
	checkGolden(t, "gset-string", crdt.GSet[string]{}, g.Merge(g2), crdt.GSet[string].String)

	var rw, rw2 crdt.RWSet[string]
	rw.Add(alice.Writer(), "in", "out")
	rw2 = rw2.Merge(rw)
	rw2.Remove(bob.Writer(), "out")
	rw.Add(alice.Writer(), "out", "late")
	checkGolden(t, "rwset-string", crdt.RWSet[string]{}, rw.Merge(rw2), crdt.RWSet[string].String)

	var mv, mv2 crdt.MVRegister[int]
	mv.Set(alice.Writer(), 300)
	mv2.Set(bob.Writer(), -1)
	checkGolden(t, "mvregister-int", crdt.MVRegister[int]{}, mv.Merge(mv2),
		crdt.MVRegister[int].String)

	var ew, ew2 crdt.EWFlag
	ew.Enable(alice.Writer())
	ew2.Enable(bob.Writer())
	checkGolden(t, "ewflag", crdt.EWFlag{}, ew.Merge(ew2), crdt.EWFlag.String)

	var dw, dw2 crdt.DWFlag
	dw.Enable(alice.Writer())
	dw2.Disable(bob.Writer())
	checkGolden(t, "dwflag", crdt.DWFlag{}, dw.Merge(dw2), crdt.DWFlag.String)

	var hi, hi2 crdt.MaxRegister[int]
	hi.Set(alice.Writer(), -5)
	hi2.Set(bob.Writer(), 400)
	checkGolden(t, "maxregister-int", crdt.MaxRegister[int]{}, hi.Merge(hi2),
		crdt.MaxRegister[int].String)

	var lo, lo2 crdt.MinRegister[string]
	lo.Set(alice.Writer(), "b")
	lo2.Set(bob.Writer(), "a")
	checkGolden(t, "minregister-string", crdt.MinRegister[string]{}, lo.Merge(lo2),
		crdt.MinRegister[string].String)

	var bc crdt.BoundedCounter
	bc.Add(alice.Writer(), 10)
	bc.Transfer(alice.Writer(), bob.ID(), 4)
	bc.Sub(bob.Writer(), 3)
	checkGolden(t, "boundedcounter", crdt.BoundedCounter{}, bc, crdt.BoundedCounter.String)

	var first crdt.LWWRegister[string]
	first.SetFirst(alice.Writer(), "alice")
	checkGolden(t, "lwwregister-first", crdt.LWWRegister[string]{}, first,
		crdt.LWWRegister[string].String)

	var mm crdt.ORMultiMap[string, int]
	mm.Add(alice.Writer(), "odd", 1, 3)
	mm.Add(bob.Writer(), "even", 2)
	checkGolden(t, "ormultimap", crdt.ORMultiMap[string, int]{}, mm,
		crdt.ORMultiMap[string, int].String)

	var cm crdt.PNCounterMap[string]
	cm.Add(alice.Writer(), "bread", 3)
	cm.Add(bob.Writer(), "milk", -7)
	checkGolden(t, "pncountermap", crdt.PNCounterMap[string]{}, cm,
		crdt.PNCounterMap[string].String)

	type seats = crdt.ORMap[string, crdt.BoundedCounter]
	var fm seats
	w := alice.Writer()
	fm.Update(w, "seats", func(c *crdt.BoundedCounter) { c.Add(w, 8) })
	fm2 := seats{}.Merge(fm)
	fm2.Remove(bob.Writer(), "seats")
	w = alice.Writer()
	fm.Update(w, "seats", func(c *crdt.BoundedCounter) { c.Add(w, 2) })
	checkGolden(t, "ormap-boundedcounter-marks", seats{}, fm.Merge(fm2), seats.String)
}
