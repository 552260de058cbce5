package zookeeper

import (
	"slices"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/concord-go/concord/coordination/leasestore"
)

func TestLine_IsSortedAsTheLockRecipesDo(t *testing.T) {
	mine := prefixOf(tagOf("nonce"), newInstance()+"-1f") + "0000000003"
	line, err := lineOf([]string{
		mine,
		"_c_0123456789abcdef0123456789abcdef-lock-0000000010",
		"8c4d6c1f4e2d4f0e__lock__0000000002",
		"lock-0000000001",
	})
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int64
	for _, p := range line {
		numbers = append(numbers, p.number)
		if p.foreign() == (p.name == mine) {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(numbers, []int64{1, 2, 3, 10}) {
		t.Errorf("got %v", numbers)
	}
	if line[2].tag != tagOf("nonce") || line[2].tag == tagOf("other") {
		t.Errorf("got %+v", line[2])
	}
}

func TestLine_WhatIsNoPlaceIsAnError(t *testing.T) {
	for _, name := range []string{"", "x", "lock-", "lock-x", "lock-99999999999", "__"} {
		if line, err := lineOf([]string{name}); err == nil {
			t.Errorf("%q is %+v", name, line)
		}
	}
}

func TestVersion_ComesBackAsItWas(t *testing.T) {
	stat := &zk.Stat{Czxid: 1<<40 + 7, Version: 12, Cversion: 9, NumChildren: 1}
	holder := numbered(prefixOf(tagOf("n"), newInstance()+"-1"), 4)
	m, ok := parse(heldBy(stat, 1<<63+5, holder))
	if !ok || m != (mark{created: stat.Czxid, data: 12, token: 1<<63 + 5, holder: holder}) {
		t.Errorf("held: %+v %v", m, ok)
	}
	m, ok = parse(free(stat))
	if !ok || m != (mark{created: stat.Czxid, data: 12, had: 5}) {
		t.Errorf("free: %+v %v", m, ok)
	}
	if a, b := locked(stat), locked(stat); a == b {
		t.Error("a lock of others can be taken for unchanged")
	} else if _, ok := parse(a); ok {
		t.Error("a write may rest on a lock of others")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1f.3.+4")
	f.Add("1f.3.7.concord-0123456789abcdef-0123456789abcdef-1-lock-0000000004")
	f.Add("1f.3.~x")
	f.Add("1f.-1.+4")
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := parse(leasestore.Version(text))
		if ok && m.data < 0 {
			t.Errorf("%q: data version %d means any", text, m.data)
		}
	})
}

func FuzzPlace(f *testing.F) {
	f.Add("_c_0123456789abcdef0123456789abcdef-lock-0000000010")
	f.Add("concord-0123456789abcdef-0123456789abcdef-1-lock--000000001")
	f.Fuzz(func(t *testing.T, name string) {
		p, err := placeOf(name)
		if err == nil && (p.name != name || p.number != int64(int32(p.number))) {
			t.Errorf("%q: %+v", name, p)
		}
	})
}
