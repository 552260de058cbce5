// Package documenttest checks that a store of documents obeys the contract of
// leasestore.Documents. Every store runs it:
//
//	func TestDocuments(t *testing.T) {
//		documenttest.Run(t, func(t *testing.T) (a, b leasestore.Documents) { return open(t), open(t) })
//	}
//
// docs/stores.md describes documents.
package documenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Run checks the stores returned by open: two stores on the same initially empty location, as used
// by two processes. They may be the same value. Each error names the broken rule.
func Run(t *testing.T, open func(t *testing.T) (a, b leasestore.Documents)) {
	for _, c := range []struct {
		rule string
		test func(t *testing.T, a, b leasestore.Documents)
	}{
		{"without a document bytes and version are empty", empty},
		{"what was written is read by others, under the version that was returned", written},
		{"a swap under another version is ErrConflict, and writes nothing", conflicts},
		{"no version is used twice, also if the same bytes are written again", versions},
		{"names are kept apart, and documents from leases", apart},
		{"any bytes up to MaxDocument are kept", sizes},
		{"a Document refuses more than MaxDocument, and bad names", bounds},
		{"a store copies the bytes that it keeps and returns", copies},
		{"of many that swap at once one wins", races},
		{"after the end of the context nothing is written", ended},
	} {
		t.Run(strings.ReplaceAll(c.rule, ",", ""), func(t *testing.T) {
			a, b := open(t)
			c.test(t, a, b)
		})
	}
}

func load(t *testing.T, d leasestore.Documents, name string) (string, leasestore.Version) {
	t.Helper()
	text, v, err := d.LoadDocument(t.Context(), name)
	if err != nil {
		t.Fatalf("load of %q: %v", name, err)
	}
	return string(text), v
}

func swap(t *testing.T, d leasestore.Documents, name string, old leasestore.Version,
	next string) leasestore.Version {
	t.Helper()
	v, err := d.SwapDocument(t.Context(), name, old, []byte(next))
	if err != nil || v == "" {
		t.Fatalf("swap of %q from version %q: version %q, error %v", name, old, v, err)
	}
	return v
}

func shows(t *testing.T, d leasestore.Documents, name, text string, v leasestore.Version) {
	t.Helper()
	if got, version := load(t, d, name); got != text || version != v {
		t.Fatalf("load of %q shows %.80q under %q, want %.80q under %q", name, got, version,
			text, v)
	}
}

func empty(t *testing.T, a, _ leasestore.Documents) { shows(t, a, "x", "", "") }

func written(t *testing.T, a, b leasestore.Documents) {
	v := swap(t, a, "x", "", "one")
	shows(t, b, "x", "one", v)
	w := swap(t, b, "x", v, "")
	shows(t, a, "x", "", w)
}

func conflicts(t *testing.T, a, b leasestore.Documents) {
	v := swap(t, a, "x", "", "one")
	w := swap(t, b, "x", v, "two")
	for _, old := range []leasestore.Version{"", v, "no version", "0", "-1", "1:1",
		"99999999999999999999"} {
		if _, err := a.SwapDocument(t.Context(), "x", old, []byte("three")); !errors.Is(err,
			leasestore.ErrConflict) {
			t.Fatalf("swap under %q, which is not the version: error %v", old, err)
		}
	}
	if _, err := a.SwapDocument(t.Context(), "y", v, []byte("three")); !errors.Is(err,
		leasestore.ErrConflict) {
		t.Fatalf("swap of what is not there: error %v", err)
	}
	shows(t, a, "x", "two", w)
	shows(t, a, "y", "", "")
}

func versions(t *testing.T, a, _ leasestore.Documents) {
	seen := map[leasestore.Version]bool{}
	v := leasestore.Version("")
	for range 20 {
		v = swap(t, a, "x", v, "same")
		if seen[v] {
			t.Fatalf("version %q twice", v)
		}
		seen[v] = true
	}
}

func apart(t *testing.T, a, _ leasestore.Documents) {
	names := []string{"x", "X", "x ", " x", "x/y", "x y", "ä", "..", "x.lease",
		strings.Repeat("n", 200), strings.Repeat("n", 201)}
	marks := map[string]leasestore.Version{}
	for _, n := range names {
		marks[n] = swap(t, a, n, "", "of "+n)
	}
	for _, n := range names {
		shows(t, a, n, "of "+n, marks[n])
	}
	leases, ok := a.(leasestore.Store)
	if !ok {
		return
	}
	if rec, v, err := leases.Load(t.Context(), "x"); err != nil || v != "" || rec.Nonce != "" {
		t.Fatalf("the lease of a document's name shows %+v under %q, error %v", rec, v, err)
	}
	if _, err := leases.Swap(t.Context(), "x", "", leasestore.Record{Owner: "me", Nonce: "n",
		Token: 1, Attempt: 1, TTL: 1e9}); err != nil {
		t.Fatalf("the lease of a document's name: %v", err)
	}
	shows(t, a, "x", "of x", marks["x"])
}

func sizes(t *testing.T, a, b leasestore.Documents) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	v := leasestore.Version("")
	for _, n := range []int{1, 256, 10_000, leasestore.MaxDocument} {
		text := string(bytes.Repeat(all, n/256+1)[:n])
		v = swap(t, a, "x", v, text)
		shows(t, b, "x", text, v)
	}
}

func bounds(t *testing.T, a, _ leasestore.Documents) {
	store, ok := a.(leasestore.Store)
	if !ok {
		return
	}
	for _, name := range []string{"", "\xff", strings.Repeat("n", leasestore.MaxName+1)} {
		if _, err := coordination.NewDocument(store, name); !errors.Is(err,
			coordination.ErrInvalid) {
			t.Errorf("a document %.20q: error %v", name, err)
		}
	}
	name := strings.Repeat("n", leasestore.MaxName)
	d, err := coordination.NewDocument(store, name)
	if err != nil {
		t.Fatal(err)
	}
	v, swapped, err := d.Swap(t.Context(), "", []byte("small"))
	if err != nil || !swapped {
		t.Fatalf("swapped %v, error %v", swapped, err)
	}
	if _, swapped, err := d.Swap(t.Context(), v, make([]byte, leasestore.MaxDocument+1)); swapped ||
		!errors.Is(err, leasestore.ErrRefused) {
		t.Errorf("swap of a byte too many: swapped %v, error %v", swapped, err)
	}
	if _, swapped, err := d.Swap(t.Context(), "", []byte("other")); swapped || err != nil {
		t.Errorf("swap under another version: swapped %v, error %v", swapped, err)
	}
	shows(t, a, name, "small", leasestore.Version(v))
}

func copies(t *testing.T, a, _ leasestore.Documents) {
	mine := []byte("mine")
	v, err := a.SwapDocument(t.Context(), "x", "", mine)
	if err != nil {
		t.Fatal(err)
	}
	mine[0] = '!'
	text, _, err := a.LoadDocument(t.Context(), "x")
	if err != nil || string(text) != "mine" {
		t.Fatalf("after the bytes that were given have changed: %q, error %v", text, err)
	}
	text[0] = '!'
	shows(t, a, "x", "mine", v)
}

func races(t *testing.T, a, b leasestore.Documents) {
	v := swap(t, a, "x", "", "")
	for round := range 10 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []string
		for i, d := range []leasestore.Documents{a, b, a, b} {
			wg.Go(func() {
				text := fmt.Sprint(round, " ", i)
				if _, err := d.SwapDocument(t.Context(), "x", v, []byte(text)); err == nil {
					mu.Lock()
					won = append(won, text)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		text, now := load(t, a, "x")
		if len(won) != 1 || won[0] != text {
			t.Fatalf("of four swaps from one version %q were done, and %q is there", won, text)
		}
		v = now
	}
}

func ended(t *testing.T, a, _ leasestore.Documents) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.SwapDocument(ctx, "x", "", []byte("late")); err == nil {
		t.Fatal("a swap succeeded")
	}
	if _, _, err := a.LoadDocument(ctx, "x"); err == nil {
		t.Fatal("a load succeeded")
	}
	shows(t, a, "x", "", "")
}
