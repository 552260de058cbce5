package leasetest

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

var errDown = errors.New("leasetest: store unreachable")

// fault is the effect of a link on calls.
type fault struct {
	cut        bool          // requests are lost: no answer until the deadline
	down       bool          // an immediate error, nothing done
	loseAnswer bool          // done, but no answer
	loseWrites bool          // like loseAnswer, but only for Swap
	refuse     bool          // Swap is rejected
	panics     bool          // the store panics
	delay      time.Duration // of answers
	slow       time.Duration // each call takes that long, half of it on the way to the store
	ahead      bool          // a blank or missing record shows a much larger token
}

// link is the path of one node to the store.
type link struct {
	store  leasestore.Store
	shared bool

	mu       sync.Mutex
	fault    fault
	next     int // calls the fault lasts for; 0: forever
	busy     map[string]bool
	overlaps int
	calls    int
	to       map[string]int // calls by name
	writes   int
}

// set changes the fault, for the next n calls if n is given.
func (l *link) set(f fault, n ...int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault, l.next = f, 0
	if len(n) > 0 {
		l.next = n[0]
	}
}

func (l *link) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

func (l *link) countTo(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to[name]
}

func (l *link) countWrites() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

// Kinds of calls, of which two do not overlap on one lease. A session may claim a lease while it
// reads it: it has learnt meanwhile that the holder's session is over.
const reads, writes = "read ", "write "

func (l *link) begin(name, kind string) fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls++
	if l.to == nil {
		l.to = map[string]int{}
	}
	l.to[name]++
	shared := strings.HasPrefix(name, leasestore.SessionRecords) // by leases
	if l.busy[kind+name] && !shared {
		l.overlaps++
	}
	l.busy[kind+name] = true
	f := l.fault
	if l.next > 0 {
		if l.next--; l.next == 0 {
			l.fault = fault{}
		}
	}
	return f
}

func (l *link) end(name, kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy[kind+name] = false
}

// through makes one call under the fault.
func (l *link) through(ctx context.Context, f fault, do func() error) error {
	switch {
	case f.panics:
		panic("leasetest: store panics")
	case f.down:
		return errDown
	case f.cut:
		<-ctx.Done()
		return ctx.Err()
	}
	if !passes(ctx, f.slow/2) {
		return ctx.Err()
	}
	err := do()
	if !passes(ctx, f.slow/2) {
		return ctx.Err()
	}
	if f.loseAnswer {
		<-ctx.Done()
		return ctx.Err()
	}
	if !passes(ctx, f.delay) {
		return ctx.Err()
	}
	return err
}

// passes waits for d, and returns false if ctx ends before.
func passes(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *link) Load(ctx context.Context,
	name string) (rec leasestore.Record, ver leasestore.Version, err error) {
	f := l.begin(name, reads)
	defer l.end(name, reads)
	err = l.through(ctx, f, func() (err error) {
		rec, ver, err = l.store.Load(ctx, name)
		return err
	})
	if err != nil {
		return leasestore.Record{}, "", err
	}
	if f.ahead && rec.Nonce == "" {
		rec.Token += 1000
	}
	return rec, ver, nil
}

// KeepsSessions returns the mode of the test; the suite has asked the store before.
func (l *link) KeepsSessions() bool { return l.shared }

// TokenOf returns the answer of the store.
func (l *link) TokenOf(v leasestore.Version) coordination.Token { return given(l.store, v) }

func given(s leasestore.Store, v leasestore.Version) coordination.Token {
	if g, ok := s.(leasestore.TokenGiver); ok {
		return g.TokenOf(v)
	}
	return 0
}

// Remove fails if the store is not a Remover; the record then stays.
func (l *link) Remove(ctx context.Context, name string, old leasestore.Version) error {
	f := l.begin(name, writes)
	defer l.end(name, writes)
	r, ok := l.store.(leasestore.Remover)
	if !ok {
		return errors.ErrUnsupported
	}
	return l.through(ctx, f, func() error { return r.Remove(ctx, name, old) })
}

func (l *link) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (ver leasestore.Version, err error) {
	f := l.begin(name, writes)
	defer l.end(name, writes)
	l.mu.Lock()
	l.writes++
	l.mu.Unlock()
	if f.refuse {
		return "", leasestore.ErrRefused
	}
	f.loseAnswer = f.loseAnswer || f.loseWrites
	err = l.through(ctx, f, func() (err error) {
		ver, err = l.store.Swap(ctx, name, old, next)
		return err
	})
	if err != nil {
		return "", err
	}
	return ver, nil
}

// watchedLink is a link to a store that can watch. A cut link delivers no notifications.
type watchedLink struct {
	*link
	w leasestore.Watcher
}

func (l watchedLink) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		for rec, err := range l.w.Watch(ctx, name) {
			l.mu.Lock()
			f := l.fault
			l.mu.Unlock()
			if f.cut || f.down {
				yield(leasestore.Record{}, errDown)
				return
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// losslog collects the calls of OnLost.
type losslog struct {
	mu  sync.Mutex
	got []*coordination.LostError
}

func (l *losslog) add(e *coordination.LostError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, e)
}

func (l *losslog) all() []*coordination.LostError {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}
