package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
)

// memory is a cell in memory.
type memory struct {
	mu      sync.Mutex
	text    []byte
	version int
	writes  int // attempted writes
	broken  error
}

func (m *memory) Read(context.Context) ([]byte, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.text), strconv.Itoa(m.version), nil
}

func (m *memory) Write(_ context.Context, old string, text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	switch {
	case m.broken != nil:
		return m.broken
	case old != strconv.Itoa(m.version):
		return leasestore.ErrConflict
	}
	m.text, m.version = text, m.version+1
	return nil
}

// TestChange_SideBySide checks that no concurrent change is lost.
func TestChange_SideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50
		var m memory
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				if err := queue.Change(t.Context(), &m, func(q *queue.Queue) {
					q.Enqueue(leasestore.Waiter{Nonce: fmt.Sprint(i), Beat: 1})
				}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if q := queue.Decode(m.text); len(q.Places) != n {
			t.Errorf("%d places", len(q.Places))
		}
	})
}

// TestChange_Ends checks that Change returns when its context ends, and after errors other than
// conflicts. Leaving an empty queue writes nothing.
func TestChange_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enqueue := func(q *queue.Queue) { q.Enqueue(leasestore.Waiter{Nonce: "n", Beat: 1}) }
		always := &memory{broken: leasestore.ErrConflict}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := queue.Change(ctx, always, enqueue); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if always.writes < 300 || always.writes > 6000 {
			t.Errorf("%d tries in a minute", always.writes)
		}
		away := &memory{broken: errors.New("away")}
		if err := queue.Change(t.Context(), away, enqueue); !errors.Is(err, away.broken) ||
			away.writes != 1 {
			t.Errorf("got %v after %d tries", err, away.writes)
		}
		if err := queue.Change(t.Context(), away, func(q *queue.Queue) {
			q.Leave(leasestore.Waiter{Nonce: "n"})
		}); err != nil {
			t.Errorf("nothing to leave: %v", err)
		}
	})
}
