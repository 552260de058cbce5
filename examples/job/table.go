package main

import (
	"context"
	"errors"
	"sync"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/fence"
)

// unanswered is the period whose first write gets no answer.
const unanswered = 2

var errNoAnswer = errors.New("no answer")

// table is the target of the job's writes, outside the members. In an SQL database, call the Admit
// method of fence.Table in the transaction that reads or writes the rows.
type table struct {
	fence fence.Guard

	mu       sync.Mutex
	rows     []row // in the order of their writes
	repeated []int // periods whose row was written again
}

type row struct {
	period int
	token  coordination.Token
}

// last returns the last period that has a row, or 0. It asks through the fence, which rejects
// former holders from then on: only the caller can add the next row.
func (t *table) last(ctx context.Context, token coordination.Token) (period int, err error) {
	err = t.fence.Do(ctx, "report", token, func(context.Context) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		period = t.lastLocked()
		return nil
	})
	return period, err
}

// write adds the row of a period, unless it is there.
func (t *table) write(ctx context.Context, token coordination.Token, period int) error {
	return t.fence.Do(ctx, "report", token, func(context.Context) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		if period <= t.lastLocked() {
			t.repeated = append(t.repeated, period)
			return nil
		}
		t.rows = append(t.rows, row{period, token})
		if period == unanswered {
			return errNoAnswer
		}
		return nil
	})
}

func (t *table) lastLocked() int {
	if len(t.rows) == 0 {
		return 0
	}
	return t.rows[len(t.rows)-1].period
}

func (t *table) all() []row {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rows
}

func (t *table) again() []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.repeated
}
