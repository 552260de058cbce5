package faulty

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// trace logs the calls of a store that a session makes to hold leases, or to wait for them: when
// each began, and how long it took.
type trace struct {
	coordination.Store
	t     *testing.T
	who   string
	begun time.Time
}

// traced returns a store that watches and batches if s does.
func traced(t *testing.T, who string, s coordination.Store) coordination.Store {
	out := trace{s, t, who, time.Now()}
	_, watches := s.(leasestore.Watcher)
	_, batches := s.(leasestore.Batcher)
	switch {
	case batches:
		return traceBatches{traceWatches{out}}
	case watches:
		return traceWatches{out}
	}
	return out
}

// note logs a call that began then.
func (c trace) note(begun time.Time, err *error, format string, args ...any) {
	c.t.Logf("%s %6.2f to %6.2f: %s %v", c.who, begun.Sub(c.begun).Seconds(),
		time.Since(c.begun).Seconds(), fmt.Sprintf(format, args...), *err)
}

// short abbreviates the name of a session's record.
func short(name string) string {
	if nonce, is := strings.CutPrefix(name, leasestore.SessionRecords); is {
		return "session " + nonce[:4]
	}
	return name
}

func (c trace) Load(ctx context.Context, name string) (_ leasestore.Record,
	_ leasestore.Version, err error) {
	defer c.note(time.Now(), &err, "load %s", short(name))
	return c.Store.Load(ctx, name)
}

func (c trace) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (_ leasestore.Version, err error) {
	defer c.note(time.Now(), &err, "swap %s, attempt %d", short(name), next.Attempt)
	return c.Store.Swap(ctx, name, old, next)
}

func (c trace) KeepsSessions() bool {
	k, able := c.Store.(leasestore.SessionKeeper)
	return able && k.KeepsSessions()
}

func (c trace) TokenOf(v leasestore.Version) coordination.Token {
	if g, able := c.Store.(leasestore.TokenGiver); able {
		return g.TokenOf(v)
	}
	return 0
}

type traceWatches struct{ trace }

func (c traceWatches) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		for rec, err := range c.Store.(leasestore.Watcher).Watch(ctx, name) {
			c.note(time.Now(), &err, "report of %s, attempt %d", short(name), rec.Attempt)
			if !yield(rec, err) {
				return
			}
		}
	}
}

type traceBatches struct{ traceWatches }

func (c traceBatches) SwapAll(ctx context.Context, all []leasestore.Swap) []leasestore.Swapped {
	var err error
	defer c.note(time.Now(), &err, "swap %d together", len(all))
	return c.Store.(leasestore.Batcher).SwapAll(ctx, all)
}
