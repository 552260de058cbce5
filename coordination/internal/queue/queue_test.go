package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
)

// TestQueue_BeyondItsBoundWhoWritesStays checks that one of the first places, written again and
// again, survives the bound.
func TestQueue_BeyondItsBoundWhoWritesStays(t *testing.T) {
	var q queue.Queue
	var alive leasestore.Waiter
	for i := range 4 * queue.Most {
		q.Enqueue(leasestore.Waiter{Nonce: fmt.Sprint("dead ", i), Beat: 1})
		alive = leasestore.Waiter{Nonce: "alive", Beat: uint64(i + 1)}
		if ahead := q.Enqueue(alive); len(ahead) > 1 {
			t.Fatalf("after %d: behind %d", i, len(ahead))
		}
	}
	if len(q.Places) != queue.Most {
		t.Errorf("%d places", len(q.Places))
	}
	if ahead := q.Enqueue(alive); len(ahead) != 0 {
		t.Errorf("behind %v", ahead)
	}
}

// FuzzDecode checks that no input panics, and that the decoded queue is usable and within its
// bound.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"places":[{"nonce":"n","beat":3,"ttl":1000,"written":1}],"writes":1}`))
	f.Add([]byte("not a queue"))
	f.Fuzz(func(t *testing.T, data []byte) {
		q := queue.Decode(data)
		before := len(q.Places)
		ahead := q.Enqueue(leasestore.Waiter{Nonce: "fuzz", Beat: 1, TTL: time.Second})
		if len(ahead) > before || len(q.Places) > queue.Most {
			t.Fatalf("%d of %d before, %d places", len(ahead), before, len(q.Places))
		}
		for _, p := range q.Places {
			q.Leave(leasestore.Waiter{Nonce: p.Nonce, Beat: p.Beat})
		}
	})
}
