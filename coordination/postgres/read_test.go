package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowServer answers the statement of Load after a second, with a row for each name.
type slowServer struct{ statements, given atomic.Int32 }

func (s *slowServer) Connect(context.Context) (driver.Conn, error) { return slowConn{s}, nil }
func (s *slowServer) Driver() driver.Driver                        { return nil }

type slowConn struct{ *slowServer }

func (slowConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (slowConn) Close() error                        { return nil }
func (slowConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }

func (c slowConn) QueryContext(ctx context.Context, _ string,
	args []driver.NamedValue) (driver.Rows, error) {
	c.statements.Add(1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		c.given.Add(1)
		return nil, ctx.Err()
	}
	var r rowsOf
	return &r, json.Unmarshal([]byte(args[0].Value.(string)), &r.names)
}

type rowsOf struct{ names []string }

func (*rowsOf) Columns() []string { return make([]string, 7) }
func (*rowsOf) Close() error      { return nil }

func (r *rowsOf) Next(dest []driver.Value) error {
	if len(r.names) == 0 {
		return io.EOF
	}
	name := r.names[0]
	copy(dest, []driver.Value{name, "owner of " + name, "n", int64(1), "1", int64(1), "v"})
	r.names = r.names[1:]
	return nil
}

// behindSlow returns a store on a slow server, which shut closes.
func behindSlow(t *testing.T) (server *slowServer, s Store, shut func()) {
	t.Helper()
	server = &slowServer{}
	db := sql.OpenDB(server)
	s, err := New(db, Config{})
	if err != nil {
		t.Fatal(err)
	}
	return server, s, func() {
		if err := errors.Join(s.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestLoad_ManyShareStatements: of a hundred loads at once, four statements make the first, and the
// next ones all others.
func TestLoad_ManyShareStatements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s, shut := behindSlow(t)
		begun := time.Now()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				name := fmt.Sprint("lease", i)
				rec, _, err := s.Load(t.Context(), name)
				if err != nil || rec.Owner != "owner of "+name {
					t.Errorf("%s: owner %q, %v", name, rec.Owner, err)
				}
			})
		}
		all.Wait()
		if took, n := time.Since(begun), server.statements.Load(); took > 2*time.Second || n > 8 {
			t.Errorf("%v and %d statements", took, n)
		}
		shut()
	})
}

// TestLoad_OneThatIsGivenUpCostsNoOther: a statement ends early only if nobody waits for it.
func TestLoad_OneThatIsGivenUpCostsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, s, shut := behindSlow(t)
		impatient, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		var all sync.WaitGroup
		for i := range 20 {
			ctx, want := t.Context(), error(nil)
			if i%2 > 0 {
				ctx, want = impatient, context.DeadlineExceeded
			}
			if i < readsAtOnce { // these have a statement each, the others share the next
				ctx, want = t.Context(), nil
			}
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if _, _, err := s.Load(ctx, fmt.Sprint("lease", i)); !errors.Is(err, want) {
					t.Errorf("load %d: %v, want %v", i, err, want)
				}
			})
		}
		all.Wait()
		if n := server.given.Load(); n != 0 {
			t.Errorf("%d statements were given up", n)
		}
		alone, give := context.WithTimeout(t.Context(), time.Millisecond)
		defer give()
		if _, _, err := s.Load(alone, "alone"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if n := server.given.Load(); n != 1 {
			t.Errorf("%d statements were given up, want that of nobody", n)
		}
		shut()
	})
}
