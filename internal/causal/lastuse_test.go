package causal

import "testing"

// The atoms of the last use sort after all paths of a value, and are separate from it.
func TestLastUse(t *testing.T) {
	d := Dot{Replica: 1, N: 1}
	value := Store{}.Put(string([]byte{byte(MakeTag(Tombstone, Bytes))})+"x", Leaf{Dot: d}).Put(
		string([]byte{byte(MakeTag(ORSet, String))})+"\xff\xff", Leaf{Dot: d})
	if _, ok := value.LastUse(); ok {
		t.Fatal("a value says when it was used")
	}
	if _, ok := (Store{}).LastUse(); ok {
		t.Fatal("nothing says when it was used")
	}
	used := value.Put(UsePath, Leaf{Dot: d, Payload: "\x07"})
	if e, ok := used.LastUse(); !ok || e.First().Payload != "\x07" {
		t.Fatal("it is not found")
	}
	switch rest := used.Drop(UsePath); {
	case rest.SameValue(value):
		t.Fatal("the test is worth nothing: the stores share all")
	case !rest.EqualValue(value), !value.EqualValue(rest), used.EqualValue(value),
		value.EqualValue(used):
		t.Fatal("EqualValue does not compare atoms")
	}
}

// A hostile peer cannot store large data there, or after it.
func TestLastUse_Check(t *testing.T) {
	for _, c := range []struct {
		path, payload string
		ok            bool
	}{
		{UsePath, "", true},
		{UsePath, string(make([]byte, MaxUse)), true},
		{UsePath, string(make([]byte, MaxUse+1)), false},
		{UsePath + "x", "", false},
		{string(AppendKey([]byte{byte(MakeTag(ORMap, String))}, []byte("k"))) + UsePath, "", false},
	} {
		if err := CheckAtom(c.path, Leaf{Dot: Dot{Replica: 1, N: 1},
			Payload: c.payload}); (err == nil) != c.ok {
			t.Errorf("%q with %d bytes: %v", c.path, len(c.payload), err)
		}
	}
}
