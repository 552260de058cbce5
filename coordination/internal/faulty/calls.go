package faulty

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// around makes a call of a store: it may do something before and after it, make it later, or not.
type around func(ctx context.Context, what string, call func(context.Context) error) error

// calls is a store whose calls for leases go through a function.
type calls struct {
	coordination.Store
	around
}

// through returns a store that watches and batches if s does.
func through(f around, s coordination.Store) coordination.Store {
	out := calls{s, f}
	_, watches := s.(leasestore.Watcher)
	_, batches := s.(leasestore.Batcher)
	switch {
	case batches:
		return callsBatched{callsWatched{out}}
	case watches:
		return callsWatched{out}
	}
	return out
}

// traced returns a store that logs its calls: when each began, and how long it took.
func traced(t *testing.T, who string, s coordination.Store) coordination.Store {
	opened := time.Now()
	return through(func(ctx context.Context, what string, call func(context.Context) error) error {
		begun := time.Now()
		err := call(ctx)
		t.Logf("%s %6.2f to %6.2f: %s %v", who, begun.Sub(opened).Seconds(),
			time.Since(opened).Seconds(), what, err)
		return err
	}, s)
}

// short abbreviates the name of a session's record.
func short(name string) string {
	if nonce, is := strings.CutPrefix(name, leasestore.SessionRecords); is {
		return "session " + nonce[:4]
	}
	return name
}

// read is the answer to a call, which may come after the caller has given up.
type read struct {
	leasestore.Record
	leasestore.Version
}

func (c calls) Load(ctx context.Context, name string) (leasestore.Record, leasestore.Version,
	error) {
	var out atomic.Pointer[read]
	err := c.around(ctx, "load "+short(name), func(ctx context.Context) error {
		rec, v, err := c.Store.Load(ctx, name)
		out.Store(&read{rec, v})
		return err
	})
	if err != nil {
		return leasestore.Record{}, "", err
	}
	return out.Load().Record, out.Load().Version, nil
}

func (c calls) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	var out atomic.Pointer[leasestore.Version]
	err := c.around(ctx, fmt.Sprintf("swap %s, attempt %d", short(name), next.Attempt),
		func(ctx context.Context) error {
			v, err := c.Store.Swap(ctx, name, old, next)
			out.Store(&v)
			return err
		})
	if err != nil {
		return "", err
	}
	return *out.Load(), nil
}

func (c calls) KeepsSessions() bool {
	k, able := c.Store.(leasestore.SessionKeeper)
	return able && k.KeepsSessions()
}

func (c calls) TokenOf(v leasestore.Version) coordination.Token {
	if g, able := c.Store.(leasestore.TokenGiver); able {
		return g.TokenOf(v)
	}
	return 0
}

type callsWatched struct{ calls }

func (c callsWatched) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		for rec, err := range c.Store.(leasestore.Watcher).Watch(ctx, name) {
			what := fmt.Sprintf("report of %s, attempt %d", short(name), rec.Attempt)
			if !yield(rec, c.around(ctx, what, func(context.Context) error { return err })) {
				return
			}
		}
	}
}

type callsBatched struct{ callsWatched }

func (c callsBatched) SwapAll(ctx context.Context, all []leasestore.Swap) []leasestore.Swapped {
	var out atomic.Pointer[[]leasestore.Swapped]
	err := c.around(ctx, fmt.Sprintf("swap %d together", len(all)),
		func(ctx context.Context) error {
			done := c.Store.(leasestore.Batcher).SwapAll(ctx, all)
			out.Store(&done)
			return nil
		})
	if err == nil {
		return *out.Load()
	}
	failed := make([]leasestore.Swapped, len(all))
	for i := range failed {
		failed[i].Err = err
	}
	return failed
}
