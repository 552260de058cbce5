package queue_test

import (
	"fmt"
	"testing"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/queue"
)

// TestQueue_BeyondItsBoundWhoWritesStays: of those who came first, one writes again and again.
func TestQueue_BeyondItsBoundWhoWritesStays(t *testing.T) {
	var q queue.Queue
	var alive coordination.Place
	for i := range 4 * queue.Most {
		q.Enqueue(coordination.Place{Nonce: fmt.Sprint("dead ", i), Beat: 1})
		alive = coordination.Place{Nonce: "alive", Beat: uint64(i + 1)}
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
