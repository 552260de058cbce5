// Package queue keeps the order of the waiters for one lease, for stores that keep it in one piece.
package queue

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/concord-go/concord/coordination/leasestore"
)

// Most bounds the places of a queue. Beyond it, the place that was written least recently is
// removed.
const Most = 256

// Queue is a list of places in order of arrival. The zero value is empty.
type Queue struct {
	Places []Place `json:"places"`
	Writes uint64  `json:"writes"` // ever made
}

// Place is a waiter and the time of its last write, counted in Queue.Writes.
type Place struct {
	leasestore.Waiter
	Written uint64 `json:"written"`
}

// Decode decodes the JSON of a queue. Invalid data gives an empty queue: only the order is lost.
func Decode(data []byte) (q Queue) {
	if json.Unmarshal(data, &q) != nil || len(q.Places) > Most {
		return Queue{}
	}
	return q
}

// Enqueue writes a place: at the end, or at the present position of its nonce, unless the place
// there has a larger beat. It returns the places ahead.
func (q *Queue) Enqueue(p leasestore.Waiter) (ahead []leasestore.Waiter) {
	i := slices.IndexFunc(q.Places, func(o Place) bool { return o.Nonce == p.Nonce })
	if i < 0 {
		q.makeRoom()
		i = len(q.Places)
		q.Places = append(q.Places, Place{Waiter: p})
	}
	q.Writes++
	q.Places[i].Written = q.Writes
	if q.Places[i].Beat < p.Beat {
		q.Places[i].Waiter = p
	}
	for _, o := range q.Places[:i] {
		ahead = append(ahead, o.Waiter)
	}
	return ahead
}

// makeRoom makes room for one more place. A living waiter writes its place often.
func (q *Queue) makeRoom() {
	for len(q.Places) >= Most {
		oldest := slices.MinFunc(q.Places, func(a, b Place) int {
			return cmp.Compare(a.Written, b.Written)
		})
		q.Places = slices.DeleteFunc(q.Places, func(p Place) bool {
			return p.Nonce == oldest.Nonce
		})
	}
}

// Leave removes the given places, except those that have been written again with a larger beat.
func (q *Queue) Leave(gone ...leasestore.Waiter) {
	q.Places = slices.DeleteFunc(q.Places, func(p Place) bool {
		return slices.ContainsFunc(gone, func(g leasestore.Waiter) bool {
			return g.Nonce == p.Nonce && g.Beat >= p.Beat
		})
	})
}
