package docs_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
)

// table plays the rows of one type.
type table func(t *testing.T, before, a, b string) (ab, ba string)

// rows returns the table of a type, whose changes do is told by word: a verb and its arguments.
//
//go:noinline
func rows[T crdt.Value[T]](do func(w *crdt.Writer, v *T, word []string)) table {
	return func(t *testing.T, before, a, b string) (string, string) {
		replicas := map[string]*crdt.Replica{"": crdt.NewReplica(9), "A": crdt.NewReplica(1),
			"B": crdt.NewReplica(2)}
		var v T
		play := func(who string, v *T, script string) {
			for step := range strings.SplitSeq(script, ";") {
				by := who
				if name, rest, ok := strings.Cut(step, ":"); ok {
					by, step = strings.TrimSpace(name), rest
				}
				step, refused := strings.CutSuffix(strings.TrimSpace(step), " (refused)")
				word := strings.Fields(step)
				if len(word) == 0 || word[0] == "nothing" {
					continue
				}
				_, err := crdt.Update(replicas[by], v, func(w *crdt.Writer, v *T) error {
					do(w, v, word)
					return nil
				})
				require.Equal(t, refused, err != nil, "%s: %v", step, err)
			}
		}
		play("", &v, before)
		left, right := v, v
		play("A", &left, a)
		play("B", &right, b)
		return fmt.Sprint(left.Merge(right)), fmt.Sprint(right.Merge(left))
	}
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// at returns the stamp in "… at 10".
func at(word []string) uint64 { return uint64(number(word[len(word)-1])) }

type person struct {
	Name crdt.LWWRegister[string]
	Tags crdt.ORSet[string]
}

type multimap = crdt.ORMultiMap[string, string]

var tables = map[string]table{
	"GCounter": rows(func(w *crdt.Writer, v *crdt.GCounter, word []string) {
		if word[0] == "reset" {
			v.Reset(w)
		} else {
			v.Add(w, uint64(number(word[1])))
		}
	}),
	"PNCounter": rows(func(w *crdt.Writer, v *crdt.PNCounter, word []string) {
		if word[0] == "reset" {
			v.Reset(w)
		} else {
			v.Add(w, number(word[1]))
		}
	}),
	"BoundedCounter": rows(func(w *crdt.Writer, v *crdt.BoundedCounter, word []string) {
		n := uint64(number(word[1]))
		switch word[0] {
		case "add":
			v.Add(w, n)
		case "sub":
			v.Sub(w, n)
		case "give": // A to B
			v.Transfer(w, 2, n)
		}
	}),
	"GSet": rows(func(w *crdt.Writer, v *crdt.GSet[string], word []string) { v.Add(w, word[1]) }),
	"ORSet": rows(func(w *crdt.Writer, v *crdt.ORSet[string], word []string) {
		switch word[0] {
		case "add":
			v.Add(w, word[1])
		case "remove":
			v.Remove(w, word[1])
		case "clear":
			v.Clear(w)
		}
	}),
	"RWSet": rows(func(w *crdt.Writer, v *crdt.RWSet[string], word []string) {
		switch word[0] {
		case "add":
			v.Add(w, word[1])
		case "remove":
			v.Remove(w, word[1])
		case "clear":
			v.Clear(w)
		}
	}),
	"EWFlag": rows(func(w *crdt.Writer, v *crdt.EWFlag, word []string) {
		if word[0] == "enable" {
			v.Enable(w)
		} else {
			v.Disable(w)
		}
	}),
	"DWFlag": rows(func(w *crdt.Writer, v *crdt.DWFlag, word []string) {
		if word[0] == "enable" {
			v.Enable(w)
		} else {
			v.Disable(w)
		}
	}),
	"LWWRegister": rows(func(w *crdt.Writer, v *crdt.LWWRegister[string], word []string) {
		v.SetAt(w, word[1], at(word))
	}),
	"MVRegister": rows(func(w *crdt.Writer, v *crdt.MVRegister[string], word []string) {
		if word[0] == "clear" {
			v.Clear(w)
		} else {
			v.Set(w, word[1])
		}
	}),
	"MaxRegister": rows(func(w *crdt.Writer, v *crdt.MaxRegister[int64], word []string) {
		v.Set(w, number(word[1]))
	}),
	"MinRegister": rows(func(w *crdt.Writer, v *crdt.MinRegister[int64], word []string) {
		v.Set(w, number(word[1]))
	}),
	"LWWMap": rows(func(w *crdt.Writer, v *crdt.LWWMap[string, string], word []string) {
		if word[0] == "remove" {
			v.Remove(w, word[1])
		} else {
			v.SetAt(w, word[1], word[2], at(word))
		}
	}),
	"PNCounterMap": rows(func(w *crdt.Writer, v *crdt.PNCounterMap[string], word []string) {
		if word[0] == "remove" {
			v.Remove(w, word[1])
		} else {
			v.Add(w, word[1], number(word[2]))
		}
	}),
	"ORMultiMap": rows(func(w *crdt.Writer, v *multimap, word []string) {
		switch word[0] {
		case "add":
			v.Add(w, word[1], word[2])
		case "remove":
			v.Remove(w, word[1], word[2])
		case "removekey":
			v.RemoveKeys(w, word[1])
		}
	}),
	"ORMap": rows(func(w *crdt.Writer, v *crdt.ORMap[string, multimap], word []string) {
		if word[0] == "remove" {
			v.Remove(w, word[1])
		} else {
			v.Update(w, word[1], func(m *multimap) { m.Add(w, word[2], word[3]) })
		}
	}),
	"Record": rows(func(w *crdt.Writer, v *crdt.Record[person], word []string) {
		switch word[0] {
		case "name":
			v.V.Name.SetAt(w, word[1], at(word))
		case "tag":
			v.V.Tags.Add(w, word[1])
		case "untag":
			v.V.Tags.Remove(w, word[1])
		}
	}),
}

// Every row of docs/crdts.md is what happens, and every type with a table here has one there.
func TestTables_AreWhatHappens(t *testing.T) {
	doc, err := os.ReadFile("crdts.md")
	require.NoError(t, err)
	played := map[string]int{}
	kind := ""
	for line := range strings.SplitSeq(string(doc), "\n") {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			kind = name
		}
		cells := strings.Split(line, "|")
		if len(cells) != 6 || strings.Contains(line, "---") || strings.Contains(line, "before") {
			continue
		}
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
		}
		play := tables[kind]
		require.NotNil(t, play, kind)
		ab, ba := play(t, cells[1], cells[2], cells[3])
		require.Equal(t, cells[4], ab, "%s: %s", kind, line)
		require.Equal(t, cells[4], ba, "%s, the other way: %s", kind, line)
		played[kind]++
	}
	for kind := range tables {
		require.Positive(t, played[kind], "%s has no table in docs/crdts.md", kind)
	}
}
