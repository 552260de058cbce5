package fence_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
)

// database is a small SQL database with one table, concord_fence, that accepts only the statements
// of fence.Table. Transactions run one after the other, and a rollback undoes their changes. Real
// locks are tested on a real PostgreSQL: make stores.
type database struct {
	turn   sync.Mutex // held by the running transaction
	rows   map[string]int64
	writes int64
	stale  map[string]int64 // what a SELECT returns instead: an old snapshot; -1 for no row
}

func (d *database) open() *sql.DB { return sql.OpenDB(d) }

func (d *database) Connect(context.Context) (driver.Conn, error) { return &conn{db: d}, nil }
func (d *database) Driver() driver.Driver                        { return nil }

type conn struct {
	db     *database
	before map[string]int64
}

func (c *conn) Begin() (driver.Tx, error) {
	c.db.turn.Lock()
	c.before = maps.Clone(c.db.rows)
	return c, nil
}

func (c *conn) Commit() error { c.db.turn.Unlock(); return nil }

func (c *conn) Rollback() error {
	c.db.rows = c.before
	c.db.turn.Unlock()
	return nil
}

func (c *conn) Close() error { return nil }

func (c *conn) Prepare(query string) (driver.Stmt, error) { return &stmt{c.db, query}, nil }

type stmt struct {
	db    *database
	query string
}

func (s *stmt) Close() error  { return nil }
func (s *stmt) NumInput() int { return -1 }

func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	switch s.query {
	case "UPDATE concord_fence SET token = $1, writes = writes + 1 WHERE resource = $2 AND token <= $3":
		have, ok := s.db.rows[args[1].(string)]
		if !ok || have > args[2].(int64) {
			return driver.RowsAffected(0), nil
		}
		s.db.rows[args[1].(string)] = args[0].(int64)
	case "INSERT INTO concord_fence (resource, token, writes) VALUES ($1, $2, 1)":
		if _, ok := s.db.rows[args[0].(string)]; ok {
			return nil, errDuplicate
		}
		s.db.rows[args[0].(string)] = args[1].(int64)
	default:
		return nil, fmt.Errorf("no such statement: %s", s.query)
	}
	s.db.writes++
	return driver.RowsAffected(1), nil
}

var errDuplicate = errors.New("duplicate key")

func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	if s.query != "SELECT token FROM concord_fence WHERE resource = $1" {
		return nil, fmt.Errorf("no such statement: %s", s.query)
	}
	name := args[0].(string)
	token, ok := s.db.rows[name]
	if old, is := s.db.stale[name]; is {
		token, ok = old, old >= 0
	}
	return &rows{token: token, left: ok}, nil
}

type rows struct {
	token int64
	left  bool
}

func (r *rows) Columns() []string { return []string{"token"} }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if !r.left {
		return io.EOF
	}
	dest[0], r.left = r.token, false
	return nil
}
