package datatest_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/concord-go/concord/distributeddata/store"
)

// slowStore is a store on a disk that stalls now and then, for longer than a replicator waits
// before it stops acknowledging.
type slowStore struct{ store.Store }

// Commit implements store.Store.
func (s slowStore) Commit(ctx context.Context, b *store.Batch) error {
	if rand.IntN(20) == 0 {
		time.Sleep(time.Duration(500+rand.IntN(700)) * time.Millisecond)
	}
	return s.Store.Commit(ctx, b)
}
