package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Watch implements leasestore.Watcher. It reports changes of tenure, and renewals of session
// records, but not of leases. All watches of a store share one connection.
func (s *store) Watch(ctx context.Context, name string) iter.Seq2[leasestore.Record, error] {
	return func(yield func(leasestore.Record, error) bool) {
		signals, err := s.listener.subscribe(escape(name))
		if err != nil {
			yield(leasestore.Record{}, err)
			return
		}
		defer s.listener.unsubscribe(escape(name), signals)
		for {
			select {
			case err = <-signals:
			case <-ctx.Done():
				return
			}
			var rec leasestore.Record
			if err == nil {
				rec, _, err = s.Load(ctx, name)
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// listener has a connection and a goroutine while there is a watch.
type listener struct {
	db      *sql.DB
	channel string

	mu struct {
		sync.Mutex
		waiting map[string]map[signals]bool // by name
		run     *run                        // the running run, or nil
		closed  bool
	}
	wg sync.WaitGroup
}

// signals receives nil when the lease may have changed, the first time as soon as no change can be
// missed. It receives an error when listening has failed. A signal that has not been received yet
// stands for all later ones.
type signals chan error

// run is one period of listening.
type run struct {
	stop  context.CancelFunc
	ready bool // guarded by listener.mu
}

func (l *listener) subscribe(name string) (signals, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		return nil, fmt.Errorf("postgres: %w", coordination.ErrClosed)
	}
	if l.db.Stats().MaxOpenConnections == 1 {
		return nil, errors.New("postgres: listening would take the pool's only connection")
	}
	s := make(signals, 1)
	if l.mu.waiting == nil {
		l.mu.waiting = map[string]map[signals]bool{}
	}
	if l.mu.waiting[name] == nil {
		l.mu.waiting[name] = map[signals]bool{}
	}
	l.mu.waiting[name][s] = true
	switch {
	case l.mu.run == nil:
		ctx, stop := context.WithCancel(context.Background())
		r := &run{stop: stop}
		l.mu.run = r
		l.wg.Go(func() { l.work(ctx, r) })
	case l.mu.run.ready:
		s <- nil
	}
	return s, nil
}

func (l *listener) unsubscribe(name string, s signals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.waiting[name], s)
	if len(l.mu.waiting[name]) == 0 {
		delete(l.mu.waiting, name)
	}
	if len(l.mu.waiting) == 0 && l.mu.run != nil {
		l.mu.run.stop()
		l.mu.run = nil
	}
}

func (l *listener) close() {
	l.mu.Lock()
	l.mu.closed = true
	if l.mu.run != nil {
		l.mu.run.stop()
	}
	l.mu.Unlock()
	l.wg.Wait()
}

// work listens until it is stopped or the connection fails. It does not return the connection to
// the pool, where the connection would continue to listen.
func (l *listener) work(ctx context.Context, r *run) {
	defer r.stop()
	conn, err := l.db.Conn(ctx)
	if err == nil {
		err = conn.Raw(func(c any) error {
			pg, ok := c.(*stdlib.Conn)
			if !ok {
				return fmt.Errorf("postgres: a connection of %T cannot listen, only pgx's can", c)
			}
			return errors.Join(l.listen(ctx, r, pg.Conn()), driver.ErrBadConn)
		})
		_ = conn.Close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.run == r { // not stopped, so it has failed
		l.mu.run = nil
		l.notifyLocked(l.allLocked(), fmt.Errorf("postgres: listening: %w", err))
	}
}

// A silent connection is noticed after these times, although nothing is expected from it.
const (
	listenFor   = 5 * time.Second // without a notification, then the server is asked for an answer
	answerAfter = 4 * time.Second
)

func (l *listener) listen(ctx context.Context, r *run, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{l.channel}.Sanitize()); err != nil {
		return err
	}
	if err := l.hear(ctx, conn); err != nil {
		return err
	}
	l.mu.Lock()
	r.ready = true
	if l.mu.run == r {
		l.notifyLocked(l.allLocked(), nil)
	}
	l.mu.Unlock()
	for {
		n, err := within(ctx, listenFor, conn.WaitForNotification)
		switch {
		case err == nil:
			l.mu.Lock()
			l.notifyLocked(l.mu.waiting[n.Payload], nil)
			l.mu.Unlock()
		case ctx.Err() != nil || conn.IsClosed() || !pgconn.Timeout(err):
			return err
		default:
			if _, err := within(ctx, answerAfter, func(ctx context.Context) (any, error) {
				return nil, conn.Ping(ctx)
			}); err != nil {
				return err
			}
		}
	}
}

// hear sends a notification on another connection and waits for it. A pooler that gives a
// connection of the server to others after each transaction, as PgBouncer may, passes none. On a
// slow way the other connection is made for longer than an answer takes.
func (l *listener) hear(ctx context.Context, conn *pgx.Conn) error {
	hello := `\hello ` + rand.Text() // no lease has it as its escaped name
	other, err := within(ctx, connecting, l.db.Conn)
	if err != nil {
		return err
	}
	_, err = within(ctx, answerAfter, func(ctx context.Context) (sql.Result, error) {
		return other.ExecContext(ctx, "SELECT pg_notify($1, $2)", l.channel, hello)
	})
	if err := errors.Join(err, other.Close()); err != nil {
		return err
	}
	_, err = within(ctx, answerAfter, func(ctx context.Context) (any, error) {
		for {
			n, err := conn.WaitForNotification(ctx)
			if err != nil || n.Payload == hello {
				return nil, err
			}
		}
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("no notification comes back, as through a pooler of transactions: %w",
			err)
	}
	return err
}

func within[T any](ctx context.Context, d time.Duration,
	do func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

func (l *listener) allLocked() map[signals]bool {
	all := map[signals]bool{}
	for _, of := range l.mu.waiting {
		for s := range of {
			all[s] = true
		}
	}
	return all
}

// notifyLocked sends a signal, in place of one that has not been received yet. An unreceived error
// stays.
func (l *listener) notifyLocked(to map[signals]bool, err error) {
	for s := range to {
		for told := err; ; {
			select {
			case s <- told:
			case earlier := <-s:
				told = cmp.Or(earlier, told)
				continue
			}
			break
		}
	}
}
