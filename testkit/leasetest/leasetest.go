package leasetest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Options declare the optional abilities of a store. Abilities that are not declared are not
// checked, and the test says so.
type Options struct {
	// Outside means that the store has goroutines or connections of its own, like the client of a
	// server. The store is then opened outside the bubble of virtual time, which stands still
	// during each call, and sessions poll it even if it is a Watcher. Claims are checked side by
	// side, as many as -parallel allows, so the functions are called concurrently.
	Outside bool
	// TokensJump means that tokens come from a shared counter: the first one is not 1, they do not
	// rise by one, and while a lease is free its token may be larger than the last tenure's.
	TokensJump bool
	// Reopen opens another handle on the records of a store, as another process would.
	Reopen func(t *testing.T, s leasestore.Store) (leasestore.Store, error)
	// Delete removes a record without the sessions' knowledge, as an operator may. When it returns,
	// Load shows it. So it is with Damage.
	Delete func(s leasestore.Store, name string) error
	// Damage makes a record unreadable.
	Damage func(s leasestore.Store, name string) error
}

// check is one claim, named by the ids it covers.
type check struct {
	id  string
	run func(*env)
}

// Run checks everything, each claim on a new store. Everything that open starts must end with the
// test.
func Run(t *testing.T, open func(t *testing.T) leasestore.Store, o Options) {
	for _, c := range slices.Concat(storeChecks, batchChecks) {
		t.Run(c.id, func(t *testing.T) { runStore(t, open, o, c) })
	}
	sessionChecks := slices.Concat(acquireChecks, checkChecks, renewChecks, lossChecks,
		releaseChecks, tokenChecks, recordChecks, queueChecks, historyChecks)
	for _, c := range sessionChecks {
		t.Run(c.id, func(t *testing.T) { runSession(t, open, o, c, false) })
	}
	t.Run("Shared", func(t *testing.T) {
		if !keepsSessions(open(t)) {
			t.Skip("not checked: the store is no SessionKeeper")
		}
		for _, c := range slices.Concat(sessionChecks, sharedChecks) {
			t.Run(c.id, func(t *testing.T) { runSession(t, open, o, c, true) })
		}
	})
}

// runStore runs a claim about the store alone. It uses real time if the store is outside the
// bubble.
func runStore(t *testing.T, open func(t *testing.T) leasestore.Store, o Options, c check) {
	run := func(t *testing.T) {
		c.run(&env{T: t, id: c.id, options: o, store: open(t), start: time.Now()})
	}
	if o.Outside {
		t.Parallel()
		run(t)
		return
	}
	synctest.Test(t, run)
}

// runSession runs a claim about sessions in its own bubble.
func runSession(t *testing.T, open func(t *testing.T) leasestore.Store, o Options, c check,
	shared bool) {
	var outside *gateway
	if o.Outside {
		t.Parallel()
		outside = newGateway(t, open(t))
		o = outside.options(o)
	}
	synctest.Test(t, func(t *testing.T) {
		e := &env{T: t, id: c.id, options: o, start: time.Now(), shared: shared}
		if e.store = outside; outside == nil {
			e.store = open(t)
		}
		c.run(e)
	})
}

// env is one store with the nodes on it.
type env struct {
	*testing.T
	id      string
	options Options
	store   leasestore.Store
	shared  bool // sessions renew one record for all their leases
	start   time.Time
	nodes   []*node
	held    []*coordination.Grant
}

// Errorf prefixes the failure with the claim.
func (e *env) Errorf(format string, args ...any) {
	e.Helper()
	e.T.Errorf("%s: "+format, append([]any{e.id}, args...)...)
}

// Fatalf prefixes the failure with the claim.
func (e *env) Fatalf(format string, args ...any) {
	e.Helper()
	e.T.Fatalf("%s: "+format, append([]any{e.id}, args...)...)
}

// node is a session with its own path to the store.
type node struct {
	*coordination.Session
	*link
	e *env
}

const name = "lease"

// quiet is the logger of all sessions: the suite loses leases on purpose.
var quiet = slog.New(slog.DiscardHandler)

// config uses round numbers: a lease is valid for 29.1 s after the send time, stop-by is 5 s
// earlier, and another session may take the record after 30.9 s.
func config() coordination.Config {
	return coordination.Config{TTL: ttl, RenewInterval: ttl / 3, OperationTimeout: op,
		RetryInterval: 5 * time.Second}
}

const (
	ttl   = 30 * time.Second
	stale = 30900 * time.Millisecond
	op    = 3 * time.Second
	drain = 5 * time.Second
	retry = 5500 * time.Millisecond // with jitter
)

func (e *env) node() *node { return e.nodeWith(config()) }

func (e *env) nodeWith(cfg coordination.Config) *node { return e.nodeSharing(cfg, e.shared) }

func (e *env) nodeSharing(cfg coordination.Config, shared bool) *node {
	if cfg.Owner == "" {
		cfg.Owner = fmt.Sprint("node", len(e.nodes))
	}
	n := &node{link: &link{store: e.store, busy: map[string]bool{}, shared: shared}, e: e}
	var store leasestore.Store = n.link
	if w, ok := e.store.(leasestore.Watcher); ok {
		store = watchedLink{n.link, w}
	}
	cfg.Logger = quiet
	s, err := coordination.Open(store, cfg)
	if err != nil {
		e.Fatalf("%v", err)
	}
	n.Session = s
	e.nodes = append(e.nodes, n)
	e.Cleanup(n.crash)
	if shared && !cfg.Forever { // faults must not hit the session's start
		g, err := s.Lease("session").Acquire(e.Context())
		e.must(err)
		e.must(g.Release(e.Context()))
	}
	return n
}

// crash ends the process as if it were killed: it no longer reaches the store.
func (n *node) crash() {
	n.set(fault{cut: true})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.Close(ctx)
	if n.overlaps > 0 {
		n.e.Errorf("D17: %d reads or writes of one lease overlapped", n.overlaps)
	}
}

func (n *node) try() (*coordination.Grant, error) {
	return n.granted(n.Lease(name).TryAcquire(n.e.Context()))
}

func (n *node) acquire(within time.Duration) (*coordination.Grant, error) {
	ctx, cancel := context.WithTimeout(n.e.Context(), within)
	defer cancel()
	return n.granted(n.Lease(name).Acquire(ctx))
}

// granted checks every grant: valid intervals never overlap, tokens grow (K8, F1, F5).
func (n *node) granted(g *coordination.Grant, err error) (*coordination.Grant, error) {
	if err != nil {
		return nil, err
	}
	if e := g.Check(); e != nil {
		n.e.Errorf("K2: granted, but Check says %v", e)
	}
	for _, other := range n.e.held {
		if other.Lease().Name() != g.Lease().Name() || other == g {
			continue
		}
		if other.Remaining() > 0 {
			n.e.Errorf("K8: %v granted while %v is valid for %v", g, other, other.Remaining())
		}
		if other.Token() >= g.Token() {
			n.e.Errorf("F1: %v granted after %v", g, other)
		}
	}
	n.e.held = append(n.e.held, g)
	return g, nil
}

// hold acquires the lease or fails the test.
func (n *node) hold() *coordination.Grant {
	n.e.Helper()
	g, err := n.try()
	n.e.must(err)
	return g
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("%v", err)
	}
}

func (e *env) that(ok bool, format string, args ...any) {
	e.Helper()
	if !ok {
		e.Errorf(format, args...)
	}
}

// nth reports whether t can be the token of the n-th tenure.
func (e *env) nth(t coordination.Token, n int) bool {
	return t == coordination.Token(n) || e.options.TokensJump && t > coordination.Token(n)
}

// kept reports whether a record was found as it was written. A blank record, or any record of a
// TokenGiver, may have a larger token.
func (e *env) kept(got, written leasestore.Record) bool {
	_, gives := e.store.(leasestore.TokenGiver)
	if e.options.TokensJump && (got.Nonce == "" || gives) && got.Token > written.Token {
		got.Token = written.Token
	}
	return got == written
}

// since returns the virtual time since t.
func since(t time.Time) time.Duration { return time.Since(t) }

// sleep advances virtual time.
func (e *env) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// losses counts the calls of OnLost for a grant.
// obeyed has the work under the grants stop, and release them, as soon as their session is closed.
func obeyed(grants ...*coordination.Grant) {
	for _, g := range grants {
		g.OnLost(func(l *coordination.LostError) {
			if l.Why == coordination.Closed {
				_ = g.Release(context.Background())
			}
		})
	}
}

func losses(g *coordination.Grant) *losslog {
	l := &losslog{}
	g.OnLost(l.add)
	return l
}
