package distributeddata_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// profile is a record for TestUpdate_WhatItReturnsEncodesAsWhatGetReturns.
type profile struct {
	Name crdt.LWWRegister[string]
	Tags crdt.ORSet[string]
	Hits crdt.PNCounter
}

// basket is a user-defined type built from a type of package crdt.
type basket struct{ inside crdt.ORSet[string] }

func (b basket) Merge(o basket) basket                   { return basket{b.inside.Merge(o.inside)} }
func (b basket) AppendBinary(dst []byte) ([]byte, error) { return b.inside.AppendBinary(dst) }
func (b basket) Decode(src []byte) (_ basket, err error) {
	b.inside, err = b.inside.Decode(src)
	return b, err
}
func (b *basket) put(w *crdt.Writer, e string) { b.inside.Add(w, e) }

type (
	nested      = crdt.ORMap[string, crdt.ORMap[string, crdt.PNCounter]]
	edit[T any] func(w *crdt.Writer, v *T)
)

// encodes plays edits of an entry at two members in turn.
func encodes[T crdt.Value[T]](name string, empty T, edits ...edit[T]) func(t *testing.T,
	c *cluster) {
	key := distributeddata.NewKey(name, empty)
	bytes := func(t *testing.T, v T) []byte {
		b, err := v.AppendBinary(nil)
		require.NoError(t, err, name)
		return b
	}
	return func(t *testing.T, c *cluster) {
		for i, change := range edits {
			dd := c.at(i % 2)
			v, err := key.Update(context.Background(), dd, func(w *crdt.Writer, v *T) error {
				change(w, v)
				return nil
			}, distributeddata.All)
			require.NoError(t, err, name)
			got, err := key.Get(context.Background(), dd)
			if err != nil { // empty again
				require.ErrorIs(t, err, distributeddata.ErrNotFound)
				continue
			}
			b := bytes(t, v)
			require.Equal(t, bytes(t, got), b, "%s, edit %d", name, i)
			back, err := empty.Decode(b)
			require.NoError(t, err, "%s, edit %d", name, i)
			require.Equal(t, b, bytes(t, back), "%s, edit %d", name, i)
			if i%2 == 0 {
				require.NoError(t, c.add(0, name, distributeddata.All)) // an event in between
			}
		}
	}
}

// The value that Update returns is like the one that Get returns: it encodes to the same bytes, and
// these can be decoded. Before, it did not cover its own event, and could not be decoded.
func TestUpdate_WhatItReturnsEncodesAsWhatGetReturns(t *testing.T) {
	type W = *crdt.Writer
	run(t, 2, distributeddata.Config{}, func(c *cluster) {
		for _, test := range []func(*testing.T, *cluster){
			encodes("gcounter", crdt.GCounter{}, func(w W, v *crdt.GCounter) {
				v.Add(w, 1)
			}, func(w W, v *crdt.GCounter) { v.Add(w, 2) },
				func(w W, v *crdt.GCounter) {
					v.Add(w, 3)
				}, func(w W, v *crdt.GCounter) { v.Reset(w); v.Add(w, 1) }),
			encodes("pncounter", crdt.PNCounter{}, func(w W, v *crdt.PNCounter) {
				v.Add(w, 1)
			}, func(w W, v *crdt.PNCounter) { v.Add(w, -2) },
				func(w W, v *crdt.PNCounter) {
					v.Reset(w)
				}, func(w W, v *crdt.PNCounter) { v.Add(w, 1) }),
			encodes("bounded", crdt.BoundedCounter{}, func(w W, v *crdt.BoundedCounter) {
				v.Add(w, 5)
			}, func(w W, v *crdt.BoundedCounter) { v.Add(w, 1) },
				func(w W, v *crdt.BoundedCounter) { v.Sub(w, 3) }),
			encodes("gset", crdt.GSet[string]{}, func(w W, v *crdt.GSet[string]) {
				v.Add(w, "a")
			}, func(w W, v *crdt.GSet[string]) { v.Add(w, "b", "a") }),
			encodes("orset", items{}, func(w W, v *items) {
				v.Add(w, "a", "b", "c")
			}, func(w W, v *items) { v.Add(w, "d") },
				func(w W, v *items) {
					v.Remove(w, "a")
				}, func(w W, v *items) { v.Remove(w, "b") }, func(w W, v *items) { v.Add(w, "c") },
				func(*crdt.Writer, *items) {}, func(w W, v *items) { v.Clear(w) }),
			encodes("rwset", crdt.RWSet[string]{}, func(w W, v *crdt.RWSet[string]) {
				v.Add(w, "a", "b")
			}, func(w W, v *crdt.RWSet[string]) { v.Remove(w, "a") },
				func(w W, v *crdt.RWSet[string]) { v.Forget(w) }),
			encodes("ewflag", crdt.EWFlag{}, func(w W, v *crdt.EWFlag) {
				v.Enable(w)
			}, func(w W, v *crdt.EWFlag) { v.Enable(w) }),
			encodes("dwflag", crdt.DWFlag{}, func(w W, v *crdt.DWFlag) {
				v.Enable(w)
			}, func(w W, v *crdt.DWFlag) { v.Disable(w) }),
			encodes("lwwregister", crdt.LWWRegister[int]{}, func(w W, v *crdt.LWWRegister[int]) {
				v.Set(w, 1)
			}, func(w W, v *crdt.LWWRegister[int]) { v.Set(w, 2) }),
			encodes("mvregister", crdt.MVRegister[int]{}, func(w W, v *crdt.MVRegister[int]) {
				v.Set(w, 1)
			}, func(w W, v *crdt.MVRegister[int]) { v.Set(w, 2) }),
			encodes("max", crdt.MaxRegister[int]{}, func(w W, v *crdt.MaxRegister[int]) {
				v.Set(w, 1)
			}, func(w W, v *crdt.MaxRegister[int]) { v.Set(w, 2) },
				func(w W, v *crdt.MaxRegister[int]) { v.Set(w, 1) }),
			encodes("min", crdt.MinRegister[int]{}, func(w W, v *crdt.MinRegister[int]) {
				v.Set(w, 3)
			}, func(w W, v *crdt.MinRegister[int]) { v.Set(w, 2) }),
			encodes("lwwmap", crdt.LWWMap[string, int]{}, func(w W, v *crdt.LWWMap[string, int]) {
				v.Set(w, "a", 1)
				v.Set(w, "b", 1)
			},
				func(w W, v *crdt.LWWMap[string, int]) {
					v.Set(w, "a", 2)
				}, func(w W, v *crdt.LWWMap[string, int]) { v.Remove(w, "a") }),
			encodes("multimap", crdt.ORMultiMap[string, int]{},
				func(w W, v *crdt.ORMultiMap[string, int]) {
					v.Add(w, "a", 1, 2)
				},
				func(w W, v *crdt.ORMultiMap[string, int]) { v.Remove(w, "a", 1) }),
			encodes("countermap", crdt.PNCounterMap[string]{},
				func(w W, v *crdt.PNCounterMap[string]) {
					v.Add(w, "a", 1)
					v.Add(w, "b", 1)
				},
				func(w W, v *crdt.PNCounterMap[string]) {
					v.Remove(w, "a")
				}, func(w W, v *crdt.PNCounterMap[string]) { v.Add(w, "a", 1) }),
			encodes("nested", nested{}, func(w W, v *nested) {
				v.Update(w, "a", func(in *crdt.ORMap[string, crdt.PNCounter]) {
					in.Update(w, "x", func(n *crdt.PNCounter) { n.Add(w, 3) })
				})
			}, func(w W, v *nested) {
				v.Update(w, "b", func(in *crdt.ORMap[string, crdt.PNCounter]) {
					in.Update(w, "y", func(n *crdt.PNCounter) { n.Add(w, 3) })
				})
			}, func(w W, v *nested) { v.Remove(w, "b") }, func(w W, v *nested) {
				v.Update(w, "a", func(in *crdt.ORMap[string, crdt.PNCounter]) {
					in.Remove(w, "x")
					in.Update(w, "z", func(n *crdt.PNCounter) { n.Add(w, 1) })
				})
			}),
			encodes("record", crdt.Record[profile]{}, func(w W, v *crdt.Record[profile]) {
				v.V.Name.Set(w, "n")
				v.V.Tags.Add(w, "a", "b")
			},
				func(w W, v *crdt.Record[profile]) {
					v.V.Hits.Add(w, 2)
				}, func(w W, v *crdt.Record[profile]) {
					v.V.Tags.Remove(w, "a")
					v.V.Hits.Reset(w)
				}),
			encodes("records", crdt.ORMap[string, crdt.Record[profile]]{},
				func(w W, v *crdt.ORMap[string, crdt.Record[profile]]) {
					v.Update(w, "k", func(p *crdt.Record[profile]) {
						p.V.Tags.Add(w, "a")
						p.V.Hits.Add(w, 1)
					})
				}, func(w W, v *crdt.ORMap[string, crdt.Record[profile]]) {
					v.Update(w, "k", func(p *crdt.Record[profile]) { p.V.Hits.Add(w, 1) })
				}),
			encodes("own", basket{}, func(w W, v *basket) {
				v.put(w, "a")
			}, func(w W, v *basket) { v.put(w, "b") }),
		} {
			test(t, c)
		}
	})
}
