package postgres

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/concord-go/concord/coordination/leasestore"
)

// reads loads rows. Up to readsAtOnce statements are under way, and loads that begin meanwhile
// share the next one: a session that waits for a thousand leases reads as many rows at a time, and
// on a slow way they would wait for each other's connections.
type reads struct {
	wg sync.WaitGroup // of the goroutines that send statements
	mu struct {
		sync.Mutex
		running int
		waiting []*read
	}
}

const (
	readsAtOnce = 4
	maxReads    = 256 // in a statement
)

// read is a load that waits for its row.
type read struct {
	ctx  context.Context
	name string     // escaped
	done chan found // capacity one
}

type found struct {
	row
	err error
}

// row is a row of the table. The row of an absent lease has no version, and the last value of the
// sequence as its token.
type row struct {
	owner, nonce, attempt, version string
	token, ttl                     int64
}

func (s *store) loadStatement() string {
	return fmt.Sprintf(`SELECT name, owner, nonce, token, attempt::text, ttl, %[2]s FROM %[1]s
	WHERE name = ANY(ARRAY(SELECT json_array_elements_text($1::text::json)))
UNION ALL SELECT NULL, '', '', CASE WHEN is_called THEN last_value ELSE 0 END, '0', 0, '' FROM %[1]s_version`,
		s.table, mark)
}

// row returns the row of a lease, whose escaped name is text. Those of session records wait for no
// others.
func (s *store) row(ctx context.Context, name, text string) (row, error) {
	r := &read{ctx, text, make(chan found, 1)}
	group := &s.leases
	if strings.HasPrefix(name, leasestore.SessionRecords) {
		group = &s.sessions
	}
	group.enter(s, name, r)
	select {
	case f := <-r.done:
		return f.row, f.err
	case <-ctx.Done():
		return row{}, ctx.Err()
	}
}

// enter lets a load wait for the next statement, which begins at once unless enough are under way.
func (g *reads) enter(s *store, name string, r *read) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.waiting = append(g.mu.waiting, r)
	if g.mu.running == readsAtOnce {
		return
	}
	g.mu.running++
	g.wg.Go(func() {
		for all := g.next(); len(all) > 0; all = g.next() {
			s.readAll(name, all)
		}
	})
}

// next returns the loads of the next statement, or none; then the goroutine ends.
func (g *reads) next() []*read {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.waiting = slices.DeleteFunc(g.mu.waiting, func(r *read) bool { return r.ctx.Err() != nil })
	n := min(len(g.mu.waiting), maxReads)
	if n == 0 {
		g.mu.running--
	}
	all := g.mu.waiting[:n:n]
	g.mu.waiting = g.mu.waiting[n:]
	return all
}

// readAll loads the rows with one statement. Name is one of them.
func (s *store) readAll(name string, all []*read) {
	ctx, cancel := together(all)
	defer cancel()
	rows, err := ask(ctx, s.pool, name, func(ctx context.Context) (map[string]row, error) {
		return s.rows(ctx, all)
	})
	for _, r := range all {
		one, present := rows[r.name]
		if !present {
			one = rows[""]
		}
		r.done <- found{one, err}
	}
}

// rows returns the rows by escaped name. That of the empty name is for absent ones.
func (s *store) rows(ctx context.Context, all []*read) (map[string]row, error) {
	names := make([]string, len(all))
	for i, r := range all {
		names[i] = r.name
	}
	text, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	answer, err := s.db.QueryContext(ctx, s.load, string(text))
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	rows := map[string]row{}
	for answer.Next() {
		var name sql.NullString
		var r row
		if err := answer.Scan(&name, &r.owner, &r.nonce, &r.token, &r.attempt, &r.ttl,
			&r.version); err != nil {
			return nil, err
		}
		rows[name.String] = r
	}
	return rows, answer.Err()
}

// together returns a context that ends when those of all loads have ended.
func together(all []*read) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(all[0].ctx))
	var ended atomic.Int64
	stops := make([]func() bool, len(all))
	for i, r := range all {
		stops[i] = context.AfterFunc(r.ctx, func() {
			if ended.Add(1) == int64(len(all)) {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
