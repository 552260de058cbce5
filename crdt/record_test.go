package crdt_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/internal/hosted"
	"github.com/concord-go/concord/testkit/crdttest"
)

type profile struct {
	Name  crdt.LWWRegister[string]
	Tags  crdt.ORSet[string]
	Votes crdt.PNCounter
}

// changeProfile changes one field of a profile whose cells begin with at.
func changeProfile(d *draw, w *crdt.Writer, p *crdt.Record[profile], at string) []effect {
	switch d.Int("field", 0, 5) {
	case 0:
		e := d.Letter("name")
		p.V.Name.Set(w, e)
		return crdttest.Set(at+"Name", e)
	case 1:
		n := amountOf(d)
		p.V.Votes.Add(w, n)
		return crdttest.Count(at+"Votes", n)
	case 2:
		p.V.Votes.Reset(w)
		return crdttest.Reset(at + "Votes")
	}
	return changeSet(d, w, &p.V.Tags, at+"Tags")
}

// showProfile adds the cells of a profile to out.
func showProfile(out map[string]string, p crdt.Record[profile], at string) {
	if e, ok := p.V.Name.Value(); ok {
		out[at+"Name"] = e
	}
	for e := range p.V.Tags.All() {
		out[at+"Tags"+e] = "in"
	}
	if slots(p.V.Votes) > 0 {
		out[at+"Votes"] = p.V.Votes.String()
	}
}

// profileSpec applies the specification of the field that each cell belongs to.
func profileSpec(puts []crdttest.Visible) (string, bool) {
	switch cell := puts[0].Cell; {
	case strings.HasSuffix(cell, "Name"):
		return crdttest.Last(puts)
	case strings.HasSuffix(cell, "Votes"):
		return crdttest.Sum(puts)
	}
	return crdttest.Present(puts)
}

func TestLaws_Record(t *testing.T) {
	crdttest.Run(t, crdttest.Type[crdt.Record[profile]]{
		Spec:     profileSpec,
		MaxBytes: func(cells int) int { return 3*14 + 3*40 + 3*40*cells },
		Change: func(d *draw, w *crdt.Writer, p *crdt.Record[profile]) []effect {
			return changeProfile(d, w, p, "")
		},
		Show: func(p crdt.Record[profile]) map[string]string {
			out := map[string]string{}
			showProfile(out, p, "")
			return out
		},
	})
}

// Removing the key of a record resets what the removal has seen of each field.
func TestLaws_ORMapOfRecords(t *testing.T) {
	type m = crdt.ORMap[string, crdt.Record[profile]]
	crdttest.Run(t, crdttest.Type[m]{
		Spec:     profileSpec,
		MaxBytes: func(cells int) int { return slotsAndMarks(3)(0) + 3*3*12 + 3*48*cells },
		Change: func(d *draw, w *crdt.Writer, v *m) (effects []effect) {
			k := d.Letter("key")
			switch d.Int("op", 0, 8) {
			case 0:
				v.Clear(w)
				return crdttest.Reset("")
			case 1, 2:
				v.Remove(w, k)
				return crdttest.Reset(k)
			}
			v.Update(w, k, func(p *crdt.Record[profile]) { effects = changeProfile(d, w, p, k) })
			return effects
		},
		Show: func(v m) map[string]string {
			out, keys := map[string]string{}, 0
			for k, p := range v.All() {
				showProfile(out, p, k)
				keys++
			}
			if keys != v.Len() {
				out["len"] = fmt.Sprint(v.Len())
			}
			return out
		},
	})
}

type team struct {
	Lead    crdt.Record[profile]
	Members crdt.ORMap[string, crdt.Record[profile]]
}

func TestLaws_RecordOfRecordsAndMaps(t *testing.T) {
	type m = crdt.Record[team]
	crdttest.Run(t, crdttest.Type[m]{
		Spec:     profileSpec,
		MaxBytes: func(cells int) int { return slotsAndMarks(4)(0) + 4*3*24 + 3*60*cells },
		Change: func(d *draw, w *crdt.Writer, v *m) (effects []effect) {
			switch k := d.Letter("key"); d.Int("op", 0, 5) {
			case 0:
				v.V.Members.Remove(w, k)
				return crdttest.Reset("m" + k)
			case 1, 2:
				return changeProfile(d, w, &v.V.Lead, "lead")
			default:
				v.V.Members.Update(w, k, func(p *crdt.Record[profile]) {
					effects = changeProfile(d, w, p, "m"+k)
				})
				return effects
			}
		},
		Show: func(v m) map[string]string {
			out := map[string]string{}
			showProfile(out, v.V.Lead, "lead")
			for k, p := range v.V.Members.All() {
				showProfile(out, p, "m"+k)
			}
			return out
		},
	})
}

// A record may be changed without Update, like other values, before and after a merge.
func TestRecord_ChangedDirectly(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.Record[profile]
	a.V.Name.Set(alice.Writer(), "ann")
	a.V.Tags.Add(alice.Writer(), "x", "y")
	b = b.Merge(a)
	b.V.Tags.Remove(bob.Writer(), "x")
	b.V.Votes.Add(bob.Writer(), 2)
	a.V.Tags.Add(alice.Writer(), "x")
	a, b = a.Merge(b), b.Merge(a)
	require.Equal(t, "{Name:ann Tags:{x y} Votes:2}", a.String())
	require.Equal(t, encode(t, a), encode(t, b))
	require.True(t, seen(t, a).Equal(seen(t, b)))
	d, err := crdt.Update(alice, &a, func(w *crdt.Writer, p *crdt.Record[profile]) error {
		p.V.Votes.Add(w, 1)
		p.V.Name.Set(w, "eve")
		return nil
	})
	require.NoError(t, err)
	a.V.Votes.Add(alice.Writer(), 10)
	require.NoError(t, crdt.Apply(&b, d))
	require.Equal(t, "{Name:eve Tags:{x y} Votes:13}", a.Merge(b).String())
	require.Equal(t, "{Name:eve Tags:{x y} Votes:3}", b.String())
}

// A record in a replicator consists of atoms like any value, and changing one field changes only
// that field's atoms.
func TestRecord_InAReplicator(t *testing.T) {
	a, b := &node{id: 1}, &node{id: 2}
	e1, err := update(t, a, crdt.Record[profile]{},
		func(w *crdt.Writer, p *crdt.Record[profile]) error {
			p.V.Name.Set(w, "ann")
			p.V.Votes.Add(w, 3)
			return nil
		})
	require.NoError(t, err)
	b.apply(e1)
	e2, err := update(t, b, crdt.Record[profile]{},
		func(w *crdt.Writer, p *crdt.Record[profile]) error {
			p.V.Tags.Add(w, "x")
			return nil
		})
	require.NoError(t, err)
	require.Len(t, e2.change.Adds, 1)
	require.Empty(t, e2.change.Removes)
	a.apply(e2)
	p := crdt.Record[profile]{}
	err = hosted.Load(&p, a.store, a.seen)
	require.NoError(t, err)
	require.Equal(t, "{Name:ann Tags:{x} Votes:3}", p.String())
}

func TestRecord_ForeignFieldsAreRefused(t *testing.T) {
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.Record[profile]
	a.V.Tags.Add(alice.Writer(), "x")
	b.V.Tags.Add(bob.Writer(), "y")
	b = b.Merge(b)
	was := encode(t, a)
	for name, assign := range map[string]func(p *crdt.Record[profile]){
		"of another record": func(p *crdt.Record[profile]) { p.V.Tags = b.V.Tags },
		"empty":             func(p *crdt.Record[profile]) { p.V.Tags = crdt.ORSet[string]{} },
		"merged":            func(p *crdt.Record[profile]) { p.V.Tags = p.V.Tags.Merge(b.V.Tags) },
		"the whole":         func(p *crdt.Record[profile]) { *p = b },
	} {
		_, err := crdt.Update(alice, &a, func(_ *crdt.Writer, p *crdt.Record[profile]) error {
			assign(p)
			return nil
		})
		require.ErrorIs(t, err, crdt.ErrInvalid, name)
		require.Equal(t, was, encode(t, a), name)
	}
	a = a.Merge(a)
	a.V.Tags = crdt.ORSet[string]{}
	_, err := a.AppendBinary(nil)
	require.ErrorIs(t, err, crdt.ErrInvalid)
}

// A copy taken out of a map cannot be changed, neither field by field nor as a whole.
func TestRecord_CopyOutOfAMap(t *testing.T) {
	alice := crdt.NewReplica(1)
	var m crdt.ORMap[string, crdt.Record[profile]]
	w := alice.Writer()
	var kept *crdt.Record[profile]
	m.Update(w, "k", func(p *crdt.Record[profile]) { p.V.Tags.Add(w, "x"); kept = p })
	kept.V.Tags.Add(w, "y")
	require.ErrorIs(t, w.Err(), crdt.ErrInvalid)
	p, ok := m.Get("k")
	require.True(t, ok)
	w = alice.Writer()
	p.V.Votes.Add(w, 1)
	require.ErrorIs(t, w.Err(), crdt.ErrInvalid)
	require.Equal(t, "{k:{Name:empty Tags:{x} Votes:0}}", m.String())
}

func TestRecord_BadStructs(t *testing.T) {
	type unexported struct{ tags crdt.ORSet[string] }
	type plain struct{ N int }
	type ownField struct{ H highest }
	check := func(name, want string, err error) {
		require.ErrorIs(t, err, crdt.ErrInvalid, name)
		require.ErrorContains(t, err, want, name)
	}
	_, err := crdt.Record[int]{}.AppendBinary(nil)
	check("no struct", "int is not a struct", err)
	_, err = crdt.Record[unexported]{V: unexported{tags: crdt.ORSet[string]{}}}.AppendBinary(nil)
	check("unexported", "tags of crdt_test.unexported is not exported", err)
	_, err = crdt.Update(crdt.NewReplica(1), &crdt.Record[plain]{},
		func(*crdt.Writer, *crdt.Record[plain]) error {
			return nil
		})
	check("plain", "N of crdt_test.plain is a int", err)
	empty, err := crdt.Record[profile]{}.AppendBinary(nil)
	require.NoError(t, err)
	_, err = crdt.Record[ownField]{}.Decode(empty)
	check("own", "H of crdt_test.ownField", err)
	a := &node{id: 1}
	_, err = update(t, a, crdt.Record[plain]{}, func(*crdt.Writer, *crdt.Record[plain]) error {
		return nil
	})
	check("hosted", "N of crdt_test.plain", err)
	require.ErrorIs(t, crdt.Apply(&crdt.Record[plain]{}, crdt.Delta{}), crdt.ErrInvalid)
}

// The error for a field whose type changed names the field.
func TestRecord_FieldOfAnotherType(t *testing.T) {
	type other struct{ Tags crdt.GSet[string] }
	var p crdt.Record[profile]
	p.V.Tags.Add(crdt.NewReplica(1).Writer(), "x")
	_, err := crdt.Record[other]{}.Decode([]byte(encode(t, p)))
	require.ErrorIs(t, err, crdt.ErrType)
	require.ErrorContains(t, err, "field Tags")
	_, err = crdt.ORSet[string]{}.Decode([]byte(encode(t, p)))
	require.ErrorIs(t, err, crdt.ErrType)
}

// A member with an older version of the struct passes on the fields it does not know.
func TestRecord_UnknownFieldsSurvive(t *testing.T) {
	type older struct{ Name crdt.LWWRegister[string] }
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var p crdt.Record[profile]
	p.V.Name.Set(alice.Writer(), "ann")
	p.V.Votes.Add(alice.Writer(), 3)
	old, err := crdt.Record[older]{}.Decode([]byte(encode(t, p)))
	require.NoError(t, err)
	old.V.Name.Set(bob.Writer(), "bob")
	q, err := crdt.Record[profile]{}.Decode([]byte(encode(t, old)))
	require.NoError(t, err)
	require.Equal(t, "{Name:bob Tags:{} Votes:3}", p.Merge(q).String())
}

func TestRecord_Format(t *testing.T) {
	var p crdt.Record[profile]
	w := crdt.NewReplica(1).Writer()
	p.V.Name.Set(w, "secret")
	p.V.Tags.Add(w, "also secret")
	b, err := json.Marshal(p)
	require.NoError(t, err)
	require.JSONEq(t, `{"Name":"secret","Tags":["also secret"],"Votes":0}`, string(b))
	var out strings.Builder
	slog.New(slog.NewTextHandler(&out, nil)).Info("values", "p", p)
	require.NotContains(t, out.String(), "secret")
	require.Contains(t, out.String(), "p.size=2")
}

func TestRecord_NestedTooDeep(t *testing.T) {
	type r1 struct {
		F crdt.ORMap[int, crdt.GCounter]
	}
	type r2 struct{ F crdt.Record[r1] }
	type r4 struct {
		F crdt.Record[struct{ F crdt.Record[r2] }]
	}
	type r8 struct {
		F crdt.Record[struct {
			F crdt.Record[struct {
				F crdt.Record[struct{ F crdt.Record[r4] }]
			}]
		}]
	}
	type r16 struct {
		F crdt.Record[struct {
			F crdt.Record[struct {
				F crdt.Record[struct {
					F crdt.Record[struct {
						F crdt.Record[struct {
							F crdt.Record[struct{ F crdt.Record[r8] }]
						}]
					}]
				}]
			}]
		}]
	}
	_, err := crdt.Record[r16]{}.AppendBinary(nil)
	require.NoError(t, err)
	_, err = crdt.Record[struct{ F crdt.Record[r16] }]{}.AppendBinary(nil)
	require.ErrorIs(t, err, crdt.ErrTooLarge)
}

func TestGolden_Record(t *testing.T) {
	alice, bob := crdt.NewReplica(0xa11ce), crdt.NewReplica(0xb0b)
	var p, q crdt.Record[team]
	p.V.Lead.V.Name.Set(alice.Writer(), "ann")
	w := bob.Writer()
	q.V.Members.Update(w, "bob", func(m *crdt.Record[profile]) {
		m.V.Tags.Add(w, "x")
		m.V.Votes.Add(w, -2)
	})
	checkGolden(t, "record", crdt.Record[team]{}, p.Merge(q), crdt.Record[team].String)
}

func ExampleRecord() {
	type profile struct {
		Name crdt.LWWRegister[string]
		Tags crdt.ORSet[string]
	}
	alice, bob := crdt.NewReplica(1), crdt.NewReplica(2)
	var a, b crdt.Record[profile]
	a.V.Name.Set(alice.Writer(), "Ann")
	a.V.Tags.Add(alice.Writer(), "admin")
	b = b.Merge(a)

	b.V.Name.Set(bob.Writer(), "Anne") // each field by its own rule:
	b.V.Tags.Remove(bob.Writer(), "admin")
	a.V.Tags.Add(alice.Writer(), "admin") // an add wins over a concurrent remove
	fmt.Println(a.Merge(b), b.Merge(a))
	// Output: {Name:Anne Tags:{admin}} {Name:Anne Tags:{admin}}
}
