package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/history"
)

// LiveOptions determine the load of Live. Zero fields take their defaults.
type LiveOptions struct {
	// Contenders for one free lease. Default 200.
	Contenders int
	// Disturb is called repeatedly, one call at a time, while sessions contend for a lease. It may
	// kill servers and start them again. It must return soon after its context ends, with all
	// servers running.
	Disturb func(ctx context.Context)
	// For is how long clients record a history. Default 15s.
	For time.Duration
}

// Live checks, in real time and on a real server, what Run cannot check in virtual time: watchers
// notice releases, exactly one of many concurrent contenders wins, and a whole history with dead
// clients, and dead servers if Disturb kills some, is linearizable. open returns another handle on
// the same records each time, as another process would have. Times are logged but not checked.
func Live(t *testing.T, open func(t *testing.T) leasestore.Store, o LiveOptions) {
	defaultTo(&o.Contenders, 200)
	defaultTo(&o.For, 15*time.Second)
	t.Run("B17_E1_ReleaseIsNoticedByWatching", func(t *testing.T) { checkHandover(t, open) })
	t.Run("B6_OneWinner", func(t *testing.T) { checkWinner(t, open, o.Contenders) })
	t.Run("H1_HistoryWithKills", func(t *testing.T) { checkLiveHistory(t, open, o) })
}

func defaultTo[N int | time.Duration](n *N, value N) {
	if *n == 0 {
		*n = value
	}
}

// liveSession returns a session that ends with the test and reaches its store through the link.
func liveSession(t *testing.T, store leasestore.Store,
	cfg coordination.Config) (*coordination.Session, *link) {
	t.Helper()
	l := &link{store: store, busy: map[string]bool{}, shared: keepsSessions(store)}
	var through leasestore.Store = l
	if w, ok := store.(leasestore.Watcher); ok {
		through = watchedLink{l, w}
	}
	cfg.Logger = quiet
	s, err := coordination.Open(through, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Close(ctx) // unless the test has failed, nothing is held
	})
	return s, l
}

// checkHandover moves a lease back and forth between two sessions. They poll so rarely that the
// test would not finish without watching.
func checkHandover(t *testing.T, open func(t *testing.T) leasestore.Store) {
	if _, ok := open(t).(leasestore.Watcher); !ok {
		t.Skip("not checked: the store is no Watcher")
	}
	const rounds = 100
	cfg := coordination.Config{TTL: 10 * time.Minute, RetryInterval: 5 * time.Minute,
		OperationTimeout: 10 * time.Second}
	var sessions [2]*coordination.Session
	for i := range sessions {
		sessions[i], _ = liveSession(t, open(t), cfg)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	held, err := sessions[0].Lease(name).Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var moved, written []time.Duration
	for i := range rounds {
		next, waits := sessions[(i+1)%2].Lease(name), make(chan waited, 1)
		_, err := next.TryAcquire(ctx)
		if !errors.Is(err, coordination.ErrHeld) {
			t.Fatalf("round %d: %v", i, err)
		}
		go func() {
			g, err := next.Acquire(ctx)
			waits <- waited{g, err, time.Now()}
		}()
		time.Sleep(20 * time.Millisecond) // let it start watching
		begun := time.Now()
		if err := held.Release(ctx); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		written = append(written, time.Since(begun))
		w := <-waits
		if w.err != nil {
			t.Fatalf("round %d: the release was not noticed: %v", i, w.err)
		}
		if w.grant.Token() <= held.Token() {
			t.Errorf("F1: %v granted after %v", w.grant, held)
		}
		moved = append(moved, w.at.Sub(begun))
		held = w.grant
	}
	if err := held.Release(ctx); err != nil {
		t.Error(err)
	}
	t.Logf("from release to next grant %v; the release itself %v", spread(moved), spread(written))
}

func keepsSessions(s leasestore.Store) bool {
	k, ok := s.(leasestore.SessionKeeper)
	return ok && k.KeepsSessions()
}

type waited struct {
	grant *coordination.Grant
	err   error
	at    time.Time
}

// spread returns median and p99.
func spread(d []time.Duration) string {
	slices.Sort(d)
	at := func(q float64) time.Duration {
		return d[int(q*float64(len(d)-1))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %v p99 %v of %d", at(0.5), at(0.99), len(d))
}

// checkWinner lets many sessions contend at once.
func checkWinner(t *testing.T, open func(t *testing.T) leasestore.Store, contenders int) {
	store := open(t)
	var won atomic.Int32
	var winner atomic.Pointer[coordination.Grant]
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range contenders {
		s, _ := liveSession(t, store, coordination.Config{TTL: 10 * time.Minute,
			Owner: fmt.Sprint("contender ", i), OperationTimeout: 30 * time.Second})
		wg.Go(func() {
			<-begin
			for {
				g, err := s.Lease(name).TryAcquire(t.Context())
				switch {
				case err == nil:
					won.Add(1)
					winner.Store(g)
				case errors.Is(err, coordination.ErrUnknown) && t.Context().Err() == nil:
					continue // lost too many races
				case !errors.Is(err, coordination.ErrHeld):
					t.Errorf("loser got %v", err)
				}
				return
			}
		})
	}
	started := time.Now()
	close(begin)
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d winners of %d", won.Load(), contenders)
	}
	if err := winner.Load().Release(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d contenders were answered within %v", contenders,
		time.Since(started).Round(time.Millisecond))
}

// liveConfig has the shortest times that a busy machine and real servers allow.
func liveConfig(owner string) coordination.Config {
	return coordination.Config{Owner: owner, Logger: quiet, TTL: 2 * time.Second,
		RenewInterval:    400 * time.Millisecond,
		OperationTimeout: 400 * time.Millisecond, RetryInterval: 200 * time.Millisecond,
		Drain: 200 * time.Millisecond, Margin: 250 * time.Millisecond}
}

// enough is the number of tenures for a meaningful history; a slow machine gets more time for them.
const enough = 5

// checkLiveHistory lets clients contend for a lease while some of them die, and checks the history.
func checkLiveHistory(t *testing.T, open func(t *testing.T) leasestore.Store, o LiveOptions) {
	r := &liveScribe{t: t, target: &fenced{}, stop: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	disturbed := make(chan int)
	go func() {
		n := 0
		for ; o.Disturb != nil && ctx.Err() == nil; n++ {
			o.Disturb(ctx)
		}
		disturbed <- n
	}()
	var wg sync.WaitGroup
	end := time.Now().Add(o.For)
	for i := range 4 {
		c := &liveClient{liveScribe: r, number: i, store: open(t),
			rnd: rand.New(rand.NewPCG(uint64(i), 3))}
		wg.Go(func() {
			for time.Now().Before(end) || r.tenures.Load() < enough &&
				time.Now().Before(end.Add(9*o.For)) {
				c.turn()
			}
		})
	}
	wg.Wait()
	cancel()
	kills := <-disturbed
	close(r.stop)
	r.later.Wait()
	t.Logf("%d tenures, %d dead clients, %d disturbances", r.tenures.Load(), r.dead.Load(), kills)
	if r.tenures.Load() < enough {
		t.Errorf("only %d tenures", r.tenures.Load())
	}
	history.Check(t, history.Lease(), r.Operations())
}

// liveScribe records the operations of live clients.
type liveScribe struct {
	history.Recorder[history.LeaseOp, history.LeaseResult]
	t             *testing.T
	target        *fenced
	later         sync.WaitGroup
	stop          chan struct{} // stops the goroutines that wait for an expiry
	tenures, dead atomic.Int32
}

type liveClient struct {
	*liveScribe
	number       int
	store        leasestore.Store
	incarnations int
	rnd          *rand.Rand
	session      *coordination.Session
	link         *link
}

func (c *liveClient) holder() string {
	return fmt.Sprintf("client %d.%d", c.number, c.incarnations)
}

// turn is one attempt, with its consequences.
func (c *liveClient) turn() {
	if c.session == nil {
		c.incarnations++
		var err error
		c.link = &link{store: c.store, busy: map[string]bool{}, shared: c.incarnations%2 == 1 &&
			keepsSessions(c.store)}
		if c.session, err = coordination.Open(c.link, liveConfig(c.holder())); err != nil {
			c.t.Errorf("%v", err)
			return
		}
		s := c.session
		c.t.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = s.Close(ctx)
		})
	}
	c.pause(200)
	g := c.acquire()
	if g == nil {
		return
	}
	c.pause(100)
	c.write(g)
	switch c.rnd.IntN(4) {
	case 0: // it dies, except for a last write with its old token
		c.link.set(fault{cut: true})
		c.dead.Add(1)
		c.session = nil
		c.pause(3000)
		c.write(g)
	case 1: // it pauses for a while
		c.link.set(fault{cut: true})
		c.pause(3000)
		c.link.set(fault{})
		c.write(g)
		c.release(g)
	default:
		c.release(g)
	}
}

func (c *liveClient) pause(most int) {
	time.Sleep(time.Duration(c.rnd.IntN(most)) * time.Millisecond)
}

func (c *liveClient) acquire() *coordination.Grant {
	op := c.Begin(c.number, history.LeaseOp{Lease: name, Kind: history.Acquire, Holder: c.holder()})
	g, err := c.session.Lease(name).TryAcquire(c.t.Context())
	switch {
	case err == nil:
		op.End(history.LeaseResult{Granted: true, Token: uint64(g.Token())})
		c.tenures.Add(1)
		c.later.Go(func() { c.expiry(g) })
		return g
	case errors.Is(err, coordination.ErrHeld):
		op.End(history.LeaseResult{})
	default:
		c.unknown(op)
	}
	return nil
}

// unknown keeps an operation open until its possible effect is undone or has expired.
func (c *liveClient) unknown(op *history.Pending[history.LeaseOp, history.LeaseResult]) {
	op.Unknown()
	c.later.Go(func() {
		select {
		case <-time.After(2 * liveConfig("").TTL):
			op.Settled()
		case <-c.stop:
		}
	})
}

// expiry records when a tenure stops being valid for its own holder.
func (c *liveClient) expiry(g *coordination.Grant) {
	for left := g.Remaining(); left > 0; left = g.Remaining() {
		select {
		case <-time.After(left):
		case <-c.stop:
			return
		}
	}
	token := uint64(g.Token())
	c.Begin(1<<20+int(token), history.LeaseOp{Lease: name, Kind: history.Expire,
		Token: token}).End(history.LeaseResult{})
}

func (c *liveClient) write(g *coordination.Grant) {
	value := fmt.Sprint(c.holder(), " ", c.rnd.IntN(1000))
	op := c.Begin(c.number, history.LeaseOp{Lease: name, Kind: history.GuardedWrite,
		Token: uint64(g.Token()), Value: value})
	op.End(history.LeaseResult{Granted: c.target.put(g.Token(), value) == nil})
}

func (c *liveClient) release(g *coordination.Grant) {
	op := c.Begin(c.number, history.LeaseOp{Lease: name, Kind: history.Release,
		Token: uint64(g.Token())})
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
	defer cancel()
	switch err := g.Release(ctx); {
	case err == nil:
		op.End(history.LeaseResult{Granted: true})
	case errors.Is(err, coordination.ErrStillHeld):
		op.End(history.LeaseResult{})
	default:
		c.unknown(op)
	}
}
