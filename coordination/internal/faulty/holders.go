package faulty

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
)

// NeverTwoHolders lets five sessions hold three leases in turn, while the calls of each are lost,
// are late, or are made without that their answer is heard, and each is cut off from time to time,
// for up to two TTLs. No tenure is valid after a later one has been. If disturb is not nil, it is
// called from time to time.
func NeverTwoHolders(t *testing.T, open Opener, disturb func(context.Context)) {
	t.Parallel()
	const sessions, leases, ttl, long = 5, 3, 1500 * time.Millisecond, 12 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	store := open(t)
	var work sync.WaitGroup
	if disturb != nil {
		work.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(rand.N(ttl))
				disturb(ctx)
			}
		})
	}
	var names [leases]contested
	for range sessions {
		s, _ := store(t)
		f := &troubles{ttl: ttl}
		t.Cleanup(f.late.Wait) // after the session, before its store closes
		out := sessionOf(t, through(f.call, s), coordination.Config{TTL: ttl})
		for i := range names {
			work.Go(func() { names[i].hold(ctx, t, out.Lease(fmt.Sprint("lease", i)), ttl) })
		}
	}
	work.Wait()
	for i := range names {
		t.Logf("lease%d: %d tenures", i, names[i].tenures.Load())
		if names[i].tenures.Load() < 2 {
			t.Errorf("lease%d has had %d tenures", i, names[i].tenures.Load())
		}
	}
}

// contested is a lease that several sessions hold in turn, and the largest token that was found
// valid.
type contested struct{ newest, tenures atomic.Uint64 }

// hold holds the lease again and again, each time for up to three TTLs.
func (c *contested) hold(ctx context.Context, t *testing.T, l *coordination.Lease,
	ttl time.Duration) {
	for ctx.Err() == nil {
		g, err := l.Acquire(ctx)
		if err != nil {
			time.Sleep(ttl / 30)
			continue
		}
		c.tenures.Add(1)
		token := uint64(g.Token())
		for end := time.Now().Add(rand.N(3 * ttl)); time.Now().Before(end) && ctx.Err() == nil; {
			before := c.newest.Load()
			if g.Check() != nil {
				break
			}
			if before > token {
				t.Errorf("%v is valid after token %d was", g, before)
				break
			}
			for before < token && !c.newest.CompareAndSwap(before, token) {
				before = c.newest.Load()
			}
			time.Sleep(time.Millisecond)
		}
		off, stop := context.WithTimeout(context.WithoutCancel(ctx), ttl)
		_ = g.Release(off)
		stop()
	}
}

// troubles are those of the calls of a session.
type troubles struct {
	ttl   time.Duration
	late  sync.WaitGroup // calls that are made later
	until atomic.Int64   // of being cut off, in Unix nanoseconds
}

var errLost = errors.New("the request or its answer is lost")

// call makes a call, or does not. A request that is late may be made after the caller has given up.
func (f *troubles) call(ctx context.Context, what string, call func(context.Context) error) error {
	if time.Now().UnixNano() < f.until.Load() {
		return f.silent(ctx, what)
	}
	switch chance := rand.IntN(1000); {
	case chance < 4: // and all that follows
		f.until.Store(time.Now().Add(rand.N(2 * f.ttl)).UnixNano())
		if chance < 2 {
			_ = call(ctx)
		}
		return f.silent(ctx, what)
	case chance < 30:
		return errLost
	case chance < 60:
		_ = call(ctx)
		return errLost
	case chance < 80:
		err := call(ctx)
		time.Sleep(rand.N(f.ttl / 2))
		return err
	case chance < 130:
		done := make(chan error, 1)
		f.late.Go(func() {
			time.Sleep(rand.N(f.ttl / 2))
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*f.ttl)
			defer cancel()
			done <- call(ctx)
		})
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return call(ctx)
}

// silent waits for an answer that does not come. A watch breaks.
func (f *troubles) silent(ctx context.Context, what string) error {
	if strings.HasPrefix(what, "report") {
		return errLost
	}
	<-ctx.Done()
	return ctx.Err()
}
