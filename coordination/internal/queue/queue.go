// Package queue keeps the order of the waiters for a lease in a document of the store. It decides
// which session tries first, not which one holds the lease: a queue that is lost costs order.
package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/coordination/leasestore"
)

// most bounds the places of a queue. Beyond it, the place that was written least recently is
// removed.
const most = 256

// Documents begins the names of the documents that hold queues.
const Documents = "concord.queue."

// documentOf returns the name of the document of a lease's queue.
func documentOf(lease string) string {
	if name := Documents + lease; len(name) <= leasestore.MaxName {
		return name
	}
	sum := sha256.Sum256([]byte(lease))
	return Documents + hex.EncodeToString(sum[:])
}

// Enqueue writes a place into the queue of a lease: at the end, or at the present position of its
// nonce, unless the place there has a larger beat. With keep, a place that is there is not written
// again for a new beat alone. Enqueue returns the places ahead, and whether it has written. After
// an error the place may or may not have been written. If the document is damaged, nobody is ahead.
func Enqueue(ctx context.Context, d leasestore.Documents, lease string, p core.Place,
	keep bool) (ahead []core.Place, wrote bool, err error) {
	err = change(ctx, d, lease, func(q *queue) bool {
		ahead, wrote = q.enqueue(p, keep)
		return wrote
	})
	return ahead, wrote, err
}

// Leave removes places, except those that have been written again with a larger beat. After an
// error each may or may not have been removed.
func Leave(ctx context.Context, d leasestore.Documents, lease string, gone []core.Place) error {
	return change(ctx, d, lease, func(q *queue) bool { return q.leave(gone) })
}

// Pauses after a conflict are random; their bound doubles each time.
const (
	firstPause = 5 * time.Millisecond
	mostPause  = 200 * time.Millisecond
)

// change applies do to the queue of a lease, and writes the queue if do returns true. It repeats
// that after conflicts until ctx ends.
func change(ctx context.Context, d leasestore.Documents, lease string,
	do func(*queue) bool) error {
	name := documentOf(lease)
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := changeOnce(ctx, d, name, do)
		switch {
		case errors.Is(err, leasestore.ErrDamaged): // an operator repairs it
			return nil
		case !errors.Is(err, leasestore.ErrConflict):
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

func changeOnce(ctx context.Context, d leasestore.Documents, name string,
	do func(*queue) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text, version, err := d.LoadDocument(ctx, name)
	if err != nil {
		return err
	}
	q := decode(text)
	if !do(&q) {
		return nil
	}
	if text, err = json.Marshal(q); err != nil {
		return err
	}
	_, err = d.SwapDocument(ctx, name, version, text)
	return err
}

// queue is a list of places in order of arrival.
type queue struct {
	Places []place `json:"places"`
	Writes uint64  `json:"writes"` // ever made
}

// place is a place and the time of its last write, counted in queue.Writes.
type place struct {
	Nonce   string        `json:"nonce"`
	Beat    uint64        `json:"beat"`
	TTL     time.Duration `json:"ttl"` // nanoseconds
	Session core.Token    `json:"session,omitempty"`
	Written uint64        `json:"written"`
}

// decode decodes a queue. Invalid data gives an empty queue: only the order is lost.
func decode(data []byte) (q queue) {
	if json.Unmarshal(data, &q) != nil || len(q.Places) > most {
		return queue{}
	}
	return q
}

func (q *queue) enqueue(p core.Place, keep bool) (ahead []core.Place, wrote bool) {
	i := slices.IndexFunc(q.Places, func(o place) bool { return o.Nonce == p.Nonce })
	if wrote = i < 0 || !keep || q.Places[i].Session != p.Session; wrote {
		i = q.write(i, p)
	}
	for _, o := range q.Places[:i] {
		ahead = append(ahead, core.Place{Nonce: o.Nonce, Beat: o.Beat, TTL: o.TTL,
			Session: o.Session})
	}
	return ahead, wrote
}

// write writes a place at a position, or at the end if that is negative, and returns its position.
func (q *queue) write(at int, p core.Place) int {
	if at < 0 {
		q.makeRoom()
		at = len(q.Places)
		q.Places = append(q.Places, place{Nonce: p.Nonce})
	}
	q.Writes++
	o := &q.Places[at]
	o.Written = q.Writes
	if o.Beat < p.Beat {
		o.Beat, o.TTL, o.Session = p.Beat, p.TTL, p.Session
	}
	return at
}

// makeRoom makes room for one more place. A living waiter that has lost its place takes another
// when the lease is free.
func (q *queue) makeRoom() {
	for len(q.Places) >= most {
		oldest := slices.MinFunc(q.Places, func(a, b place) int {
			return cmp.Compare(a.Written, b.Written)
		})
		isOldest := func(p place) bool { return p.Nonce == oldest.Nonce }
		q.Places = slices.DeleteFunc(q.Places, isOldest)
	}
}

// leave reports whether there was a place to remove.
func (q *queue) leave(gone []core.Place) bool {
	before := len(q.Places)
	q.Places = slices.DeleteFunc(q.Places, func(p place) bool {
		return slices.ContainsFunc(gone, func(g core.Place) bool {
			return g.Nonce == p.Nonce && g.Beat >= p.Beat
		})
	})
	return len(q.Places) < before
}
