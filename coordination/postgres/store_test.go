//go:build stores

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/postgres"
)

// restart kills the server, as kill -9 would, and starts it again. CONCORD_POSTGRES_RESTART is a
// command that does this.
func restart(t *testing.T) func(context.Context) {
	command := os.Getenv("CONCORD_POSTGRES_RESTART")
	if command == "" {
		t.Fatal("CONCORD_POSTGRES_RESTART is no command: run make stores")
	}
	return func(ctx context.Context) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(3 * time.Second):
		}
		if out, err := exec.Command("sh", "-c", command).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	db := connect(t)
	for _, bad := range []string{"Leases", "a.b.c", "x; drop table y", `"x"`, ".x",
		strings.Repeat("x", 51)} {
		if _, err := postgres.New(db, postgres.Config{Table: bad}); !errors.Is(err,
			coordination.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := postgres.New(nil, postgres.Config{}); !errors.Is(err, coordination.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
}

// TestInstall_TwentyAtOnce: every process of a service may call Install.
func TestInstall_TwentyAtOnce(t *testing.T) {
	db, name := connect(t), table()
	var wg sync.WaitGroup
	for range 20 {
		s, err := postgres.New(db, postgres.Config{Table: name})
		must(t, err)
		wg.Go(func() {
			if err := s.Install(t.Context()); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
}

// patient gives each operation more time than a busy machine needs, so that errors must come from
// the store.
var patient = coordination.Config{TTL: 5 * time.Minute, OperationTimeout: 30 * time.Second,
	Drain: time.Second}

// TestInstall_Schema puts the table into a schema.
func TestInstall_Schema(t *testing.T) {
	db, schema := connect(t), table()
	_, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+schema)
	must(t, err)
	s := open(t, db, schema+".leases")
	g, err := faulty.Try(t, faulty.Session(t, s, coordination.Config{}).Lease("x"))
	must(t, err)
	must(t, g.Release(t.Context()))
}

// TestNoTable: without the table, or without permission, the holder is unknown, and a write is
// certainly refused.
func TestNoTable(t *testing.T) {
	s, err := postgres.New(connect(t), postgres.Config{Table: table()})
	must(t, err)
	if _, err := s.Swap(t.Context(), "x", "", leasestore.Record{Token: 1}); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("swap: %v", err)
	}
	_, err = faulty.Session(t, s, patient).Lease("x").TryAcquire(t.Context())
	if !errors.Is(err, coordination.ErrUnknown) || errors.Is(err, coordination.ErrHeld) ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("acquire: %v", err)
	}
}

// TestLeastPrivileges: the documented privileges are sufficient.
func TestLeastPrivileges(t *testing.T) {
	db, name := connect(t), table()
	open(t, db, name)
	role := table()
	for _, statement := range []string{
		"CREATE ROLE " + role + " LOGIN",
		"GRANT SELECT, INSERT, UPDATE ON " + name + " TO " + role,
		"GRANT USAGE, SELECT ON SEQUENCE " + name + "_version TO " + role,
		"GRANT SELECT, INSERT, UPDATE ON " + name + "_documents TO " + role,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	least, err := sql.Open("pgx", os.Getenv("CONCORD_POSTGRES")+" user="+role)
	must(t, err)
	t.Cleanup(func() { _ = least.Close() })
	s, err := postgres.New(least, postgres.Config{Table: name})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	a, b := faulty.Session(t, s, coordination.Config{}).Lease("x"),
		faulty.Session(t, s, coordination.Config{TTL: 30 * time.Second,
			RetryInterval: 5 * time.Second, RenewInterval: 6 * time.Second, Fair: true}).Lease("x")
	g, err := faulty.Try(t, a)
	must(t, err)
	got := make(chan error, 1)
	go func() {
		g, err := b.Acquire(t.Context())
		got <- err
		if err == nil {
			_ = g.Release(context.Background())
		}
	}()
	must(t, g.Release(t.Context()))
	must(t, <-got)
	v, err := s.SwapDocument(t.Context(), "x", "", []byte("one"))
	must(t, err)
	_, err = s.SwapDocument(t.Context(), "x", v, []byte("two"))
	must(t, err)
}

// TestOnlyConnection: listening does not take the only connection of a pool.
func TestOnlyConnection(t *testing.T) {
	db := connect(t)
	db.SetMaxOpenConns(1)
	s := open(t, db, table())
	for _, err := range s.Watch(t.Context(), "x") {
		if err == nil {
			t.Fatal("listens on the only connection")
		}
	}
	a, b := faulty.Session(t, s, coordination.Config{}).Lease("x"),
		faulty.Session(t, s, coordination.Config{RetryInterval: 50 * time.Millisecond}).Lease("x")
	g, err := faulty.Try(t, a)
	must(t, err)
	got := make(chan error, 1)
	go func() {
		g, err := b.Acquire(t.Context())
		got <- err
		if err == nil {
			_ = g.Release(context.Background())
		}
	}()
	must(t, g.Release(t.Context()))
	must(t, <-got)
}

// TestListening_OneConnectionForAll also checks that there is none without a watch.
// Seen in akka management 680.
func TestListening_OneConnectionForAll(t *testing.T) {
	db := connect(t)
	s := open(t, db, table())
	watcher := connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	told := make(chan string, 100)
	for _, name := range []string{"a", "b", "c", "c"} {
		wg.Go(func() {
			for rec, err := range s.Watch(ctx, name) {
				if err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
				}
				told <- name + rec.Token.String()
			}
		})
	}
	for range 4 {
		<-told // the watch has begun
	}
	if n := listeners(t, watcher, s); n != 1 {
		t.Errorf("%d connections listen", n)
	}
	_, err := s.Swap(t.Context(), "c", "", leasestore.Record{Token: 7})
	must(t, err)
	for range 2 {
		if got := <-told; got != "c"+coordination.Token(7).String() {
			t.Errorf("told %s", got)
		}
	}
	cancel()
	wg.Wait()
	for listeners(t, watcher, s) != 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// listeners counts the connections whose last statement is LISTEN on the store's channel.
func listeners(t *testing.T, db *sql.DB, s postgres.Store) (n int) {
	t.Helper()
	channel := strings.Fields(s.Schema())[5] // CREATE SEQUENCE IF NOT EXISTS x_version
	channel = strings.TrimSuffix(channel, "_version;")
	must(t, db.QueryRowContext(t.Context(),
		"SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN ' || quote_ident($1) OR query = 'LISTEN \"' || $1 || '\"'", channel).Scan(&n))
	return n
}

// TestListening_SurvivesARestart: the watch returns an error, and the next watch works.
func TestListening_SurvivesARestart(t *testing.T) {
	kill := restart(t)
	s := open(t, connect(t), table())
	ended := make(chan error, 1)
	begun := make(chan bool, 10)
	go func() {
		for _, err := range s.Watch(t.Context(), "x") {
			if err != nil {
				ended <- err
				return
			}
			begun <- true
		}
		ended <- nil
	}()
	<-begun
	kill(t.Context())
	if err := <-ended; err == nil {
		t.Error("a dead connection goes unnoticed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range s.Watch(ctx, "x") {
		must(t, err)
		cancel()
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	db := connect(b)
	s := open(b, db, table())
	l := faulty.Session(b, s, coordination.Config{}).Lease("bench")
	for b.Loop() {
		g, err := l.TryAcquire(b.Context())
		must(b, err)
		must(b, g.Release(b.Context()))
	}
}
