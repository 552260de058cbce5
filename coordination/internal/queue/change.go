package queue

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/concord-go/concord/coordination"
)

// Cell keeps the text of one queue in a store that can do no more than compare and set.
type Cell interface {
	// Read gives no text if there is none.
	Read(ctx context.Context) (text []byte, version string, err error)
	// Write fails with coordination.ErrConflict if the version is another by now.
	Write(ctx context.Context, old string, text []byte) error
}

// Pauses after a conflict are random, and up to twice as long each time.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = 200 * time.Millisecond
)

// Change replaces the queue of a cell, again and again until nobody else comes between or ctx ends.
func Change(ctx context.Context, c Cell, change func(*Queue)) error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := changeOnce(ctx, c, change)
		if !errors.Is(err, coordination.ErrConflict) {
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
