package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// documents is a store of one document.
type documents struct {
	mu      sync.Mutex
	name    string
	text    []byte
	version int
	swaps   int // attempted
	broken  error
	damaged bool
}

func (d *documents) LoadDocument(
	_ context.Context, name string,
) ([]byte, leasestore.Version, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.name = name; d.damaged {
		return nil, "", leasestore.ErrDamaged
	}
	return slices.Clone(d.text), d.mark(), nil
}

func (d *documents) SwapDocument(_ context.Context, _ string, old leasestore.Version,
	next []byte) (leasestore.Version, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.swaps++
	switch {
	case d.broken != nil:
		return "", d.broken
	case old != d.mark():
		return "", leasestore.ErrConflict
	}
	d.text, d.version = next, d.version+1
	return d.mark(), nil
}

func (d *documents) mark() leasestore.Version {
	if d.version == 0 {
		return ""
	}
	return leasestore.Version(fmt.Sprint(d.version))
}

func at(nonce string, beat uint64) core.Place {
	return core.Place{Nonce: nonce, Beat: beat, TTL: time.Minute}
}

func TestQueue_KeepsTheOrderOfArrival(t *testing.T) {
	var d documents
	finds := func(p core.Place, want ...core.Place) {
		t.Helper()
		ahead, _, err := Enqueue(t.Context(), &d, "lease", p, false)
		if err != nil || !slices.Equal(ahead, want) {
			t.Errorf("%v stands behind %v, not %v, %v", p, ahead, want, err)
		}
	}
	leave := func(gone ...core.Place) {
		t.Helper()
		if err := Leave(t.Context(), &d, "lease", gone); err != nil {
			t.Error(err)
		}
	}
	finds(at("a", 1))
	finds(at("b", 1), at("a", 1))
	finds(at("c", 1), at("a", 1), at("b", 1))
	finds(at("a", 5))
	finds(at("a", 2)) // late
	finds(at("b", 2), at("a", 5))
	leave(at("a", 4), at("nobody", 1)) // a has written since
	finds(at("b", 3), at("a", 5))
	leave(at("a", 5), at("b", 7))
	finds(at("c", 2))
	finds(at("a", 6), at("c", 2))
}

// A release wakes all waiters: a place that was written a moment ago is not written again, unless
// it has been removed.
func TestEnqueue_KeepsAPlace(t *testing.T) {
	var d documents
	for _, c := range []struct {
		p    core.Place
		keep bool
		want int // swaps so far
	}{{at("a", 1), true, 1}, {at("b", 1), true, 2}, {at("b", 2), true, 2}, {at("b", 3), false, 3}} {
		before := d.swaps
		ahead, wrote, err := Enqueue(t.Context(), &d, "lease", c.p, c.keep)
		if err != nil || d.swaps != c.want || wrote != (d.swaps > before) {
			t.Errorf("%v: %d swaps, wrote %v, %v", c, d.swaps, wrote, err)
		}
		if c.p.Nonce == "b" && len(ahead) != 1 {
			t.Errorf("%v: behind %v", c, ahead)
		}
	}
}

// TestQueue_BeyondItsBoundWhoWritesStays checks that one of the first places, written again and
// again, survives the bound.
func TestQueue_BeyondItsBoundWhoWritesStays(t *testing.T) {
	var q queue
	for i := range 4 * most {
		q.enqueue(at(fmt.Sprint("dead ", i), 1), false)
		if ahead, _ := q.enqueue(at("alive", uint64(i+1)), false); len(ahead) > 1 {
			t.Fatalf("after %d: behind %d", i, len(ahead))
		}
	}
	if len(q.Places) != most {
		t.Errorf("%d places", len(q.Places))
	}
	if ahead, _ := q.enqueue(at("alive", 9999), false); len(ahead) != 0 {
		t.Errorf("behind %v", ahead)
	}
}

// TestEnqueue_SideBySide checks that no concurrent change is lost, and that the largest queue of
// real nonces is a document.
func TestEnqueue_SideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d documents
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if _, _, err := Enqueue(t.Context(), &d, "lease", at(fmt.Sprint(i), 1),
					false); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if q := decode(d.text); len(q.Places) != 50 {
			t.Errorf("%d places", len(q.Places))
		}
		for i := range most {
			p := core.Place{Nonce: fmt.Sprintf("%026d", i), Beat: 1 << 62, TTL: 24 * time.Hour}
			if _, _, err := Enqueue(t.Context(), &d, "lease", p, false); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(d.text); n > leasestore.MaxDocument/2 {
			t.Errorf("%d bytes", n)
		}
	})
}

// TestEnqueue_Ends checks that a change returns when its context ends, and after errors other than
// conflicts. Leaving an empty queue writes nothing.
func TestEnqueue_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		always := &documents{broken: leasestore.ErrConflict}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := Enqueue(ctx, always, "lease", at("n", 1), false); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if always.swaps < 300 || always.swaps > 6000 {
			t.Errorf("%d tries in a minute", always.swaps)
		}
		away := &documents{broken: errors.New("away")}
		if _, _, err := Enqueue(t.Context(), away, "lease", at("n", 1), false); !errors.Is(err,
			away.broken) || away.swaps != 1 {
			t.Errorf("got %v after %d tries", err, away.swaps)
		}
		if err := Leave(t.Context(), away, "lease", []core.Place{at("n", 1)}); err != nil {
			t.Errorf("nothing to leave: %v", err)
		}
	})
}

// A queue that cannot be read delays nobody.
func TestEnqueue_DamagedQueuesHaveNoOrder(t *testing.T) {
	d := &documents{damaged: true}
	if ahead, _, err := Enqueue(t.Context(), d, "lease", at("n", 1), false); len(ahead) > 0 || err != nil {
		t.Errorf("behind %v, %v", ahead, err)
	}
	d = &documents{text: []byte("not a queue"), version: 1}
	if ahead, _, err := Enqueue(t.Context(), d, "lease", at("n", 1), false); len(ahead) > 0 || err != nil {
		t.Errorf("behind %v, %v", ahead, err)
	}
	if ahead, _, err := Enqueue(t.Context(), d, "lease", at("m", 1), false); len(ahead) != 1 || err != nil {
		t.Errorf("behind %v, %v", ahead, err)
	}
}

func TestDocumentOf_EachNameHasItsOwnValidOne(t *testing.T) {
	seen := map[string]bool{}
	for _, lease := range []string{"x", strings.Repeat("x", leasestore.MaxName),
		strings.Repeat("y", leasestore.MaxName), strings.Repeat("x", leasestore.MaxName-1)} {
		name := documentOf(lease)
		if seen[name] || len(name) > leasestore.MaxName || !strings.HasPrefix(name, Documents) {
			t.Errorf("%.80q has %.80q", lease, name)
		}
		seen[name] = true
	}
}

// FuzzDecode checks that no input panics, and that the decoded queue is usable and within its
// bound.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"places":[{"nonce":"n","beat":3,"ttl":1000,"written":1}],"writes":1}`))
	f.Add([]byte("not a queue"))
	f.Fuzz(func(t *testing.T, data []byte) {
		q := decode(data)
		before := len(q.Places)
		ahead, _ := q.enqueue(core.Place{Nonce: "fuzz", Beat: 1, TTL: time.Second}, false)
		if len(ahead) > before || len(q.Places) > most {
			t.Fatalf("%d of %d before, %d places", len(ahead), before, len(q.Places))
		}
		for _, p := range q.Places {
			q.leave([]core.Place{{Nonce: p.Nonce, Beat: p.Beat}})
		}
	})
}
