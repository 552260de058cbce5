package queue

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/concord-go/concord/coordination/leasestore"
)

// Cell keeps the encoded queue in a store that only supports compare-and-set.
type Cell interface {
	// Read returns no text if there is none.
	Read(ctx context.Context) (text []byte, version string, err error)
	// Write fails with leasestore.ErrConflict if the version is not old any more.
	Write(ctx context.Context, old string, text []byte) error
}

// Pauses after a conflict are random; their bound doubles each time.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = 200 * time.Millisecond
)

// Change applies change to the queue of a cell, and repeats after conflicts until ctx ends.
func Change(ctx context.Context, c Cell, change func(*Queue)) error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := changeOnce(ctx, c, change)
		if !errors.Is(err, leasestore.ErrConflict) {
			return err
		}
		again := time.NewTimer(1 + rand.N(pause))
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		}
	}
}

func changeOnce(ctx context.Context, c Cell, change func(*Queue)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text, version, err := c.Read(ctx)
	if err != nil {
		return err
	}
	q := Decode(text)
	before := len(q.Places)
	change(&q)
	if before == 0 && len(q.Places) == 0 {
		return nil
	}
	if text, err = json.Marshal(q); err != nil {
		return err
	}
	return c.Write(ctx, version, text)
}
