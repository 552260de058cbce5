//go:build unix

package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/hosted"
)

// addMany adds n elements to the set.
func addMany(t *history.Txn, n int) error {
	elements := make([]string, n)
	for i := range elements {
		elements[i] = fmt.Sprintf("element-%07d", i)
	}
	w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
	defer end()
	return edit(t, w, "set", set{}, func(v *set) { v.Add(w, elements...) })
}

// clearSet removes all elements of the set.
func clearSet(t *history.Txn) error {
	w, end := hosted.Writer[*crdt.Writer](t.Dot(), t.Stamp())
	defer end()
	return edit(t, w, "set", set{}, func(v *set) { v.Clear(w) })
}

// Removing all elements of a large set names none of them, and keeps those that were added
// concurrently or in the same event.
func TestClear_OfManyElementsNamesNone(t *testing.T) {
	for name, modify := range map[string]func(*history.Txn) error{
		"the value is cleared": clearSet,
		"the key is deleted":   func(t *history.Txn) error { t.Clear("set"); return nil },
		"it is cleared and then added to": func(t *history.Txn) error {
			if err := addMany(t, 2000); err != nil {
				return err
			}
			return clearSet(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPump(3)
			p.update(0, func(t *history.Txn) error { return addMany(t, 2000) })
			p.pass(10e9)
			for _, c := range p.cores {
				h, _ := c.Keys().Get("set")
				require.Equal(t, 2000, h.Len())
			}
			clear(p.of)
			p.put(1, "set", "concurrent")
			p.put(0, "set", "seen")
			p.update(0, modify)
			p.put(0, "set", "later")
			p.pass(5e9)
			require.Less(t, p.all().bytes, 5000, "it names no elements")
			for _, c := range p.cores {
				h, _ := c.Keys().Get("set")
				require.Equal(t, 2, h.Len(), "the concurrent element, and the later one")
				require.Equal(t, p.cores[0].history.Sum(), c.history.Sum())
			}
		})
	}
}
