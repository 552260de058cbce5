package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/silence"
)

// pool is the pool of Opener, for a slow way to the server: a call takes one round trip, and a
// connection survives calls that end before their answer. The renewals of sessions wait for no
// other calls. A nil *pool does nothing; then the caller's own pool has its own rules.
type pool struct {
	links silence.Links
	calls chan struct{} // one for each call under way, but those of session records
	wg    sync.WaitGroup
}

const (
	reserved   = 3                // connections for watches and session records
	lasting    = time.Minute      // of a call; a silent connection is closed long before
	connecting = 30 * time.Second // of an attempt to connect
)

// openPool returns the pool, and its connections.
func openPool(cfg *pgx.ConnConfig, most int) (*pool, *sql.DB) {
	p := &pool{links: silence.Links{Pool: true}, calls: make(chan struct{}, max(1, most-reserved))}
	cfg.DialFunc = p.links.DialContext
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // others prepare a statement first
	db := sql.OpenDB(newConnector(stdlib.GetConnector(*cfg, stdlib.OptionShouldPing(closed))))
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return p, db
}

// closed reports whether the server has closed a connection that was idle, without asking it. The
// ping of such a connection fails at once.
func closed(_ context.Context, p stdlib.ShouldPingParams) bool {
	return p.IdleDuration > time.Second &&
		p.Conn.PgConn().CheckConn() != nil //nolint:staticcheck // advises a ping, a round trip
}

// ask runs do, which sends one statement, until ctx ends. Then do goes on, so that its connection
// stays open: what it writes may still happen.
func ask[T any](ctx context.Context, p *pool, name string,
	do func(context.Context) (T, error)) (T, error) {
	var none T
	if p == nil {
		return do(ctx)
	}
	release := func() {}
	if !strings.HasPrefix(name, leasestore.SessionRecords) {
		select {
		case p.calls <- struct{}{}:
			release = func() { <-p.calls }
		case <-ctx.Done():
			return none, fmt.Errorf("%w: waited for other calls: %w", leasestore.ErrRefused,
				ctx.Err())
		}
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	p.wg.Go(func() {
		defer release()
		in, cancel := context.WithTimeout(context.WithoutCancel(ctx), lasting)
		defer cancel()
		defer p.links.Watch(ctx)()
		value, err := do(in)
		done <- result{value, err}
	})
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// connector connects for a pool. A connection takes several round trips, so an attempt goes on when
// the call for it has ended, and serves a later one.
type connector struct {
	driver.Connector
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu struct {
		sync.Mutex
		attempts int // under way
		waiting  []chan connected
		spare    []driver.Conn
	}
}

type connected struct {
	conn driver.Conn
	err  error
}

func newConnector(c driver.Connector) *connector {
	d := &connector{Connector: c}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	made := make(chan connected, 1)
	c.mu.Lock()
	if n := len(c.mu.spare); n > 0 {
		defer c.mu.Unlock()
		conn := c.mu.spare[n-1]
		c.mu.spare = c.mu.spare[:n-1]
		return conn, nil
	}
	c.mu.waiting = append(c.mu.waiting, made)
	if c.mu.attempts < len(c.mu.waiting) {
		c.mu.attempts++
		c.wg.Go(c.attempt)
	}
	c.mu.Unlock()
	select {
	case m := <-made:
		return m.conn, m.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.mu.waiting, made); i >= 0 {
		c.mu.waiting = slices.Delete(c.mu.waiting, i, i+1)
	} else if m := <-made; m.err == nil {
		c.mu.spare = append(c.mu.spare, m.conn)
	}
	return nil, ctx.Err()
}

// attempt makes a connection for the first call that waits when it is made.
func (c *connector) attempt() {
	ctx, cancel := context.WithTimeout(c.ctx, connecting)
	defer cancel()
	conn, err := c.Connector.Connect(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.attempts--
	switch {
	case len(c.mu.waiting) > 0:
		c.mu.waiting[0] <- connected{conn, err}
		c.mu.waiting = c.mu.waiting[1:]
	case err == nil:
		c.mu.spare = append(c.mu.spare, conn)
	}
}

// Close ends the attempts under way. The pool calls it when it is closed.
func (c *connector) Close() error {
	c.stop()
	c.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, conn := range c.mu.spare {
		errs = append(errs, conn.Close())
	}
	c.mu.spare = nil
	return errors.Join(errs...)
}
