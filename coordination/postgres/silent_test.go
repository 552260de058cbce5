//go:build stores

package postgres_test

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/postgres"
)

var silences = flag.Int("silences", 1, "how often the connections of a holder fall silent")

// proxied returns a proxy for the server, and the DSN of the database behind it.
func proxied(t *testing.T) (dsn string, proxy *faulty.Proxy) {
	t.Helper()
	dsn = os.Getenv("CONCORD_POSTGRES")
	cfg, err := pgx.ParseConfig(dsn)
	must(t, err)
	proxy = faulty.New(t, fmt.Sprintf("%s:%d", cfg.Host, cfg.Port))
	return dsn + " host=127.0.0.1 port=" + proxy.Port(), proxy
}

// configured opens a store behind a proxy, as a configuration file does.
func configured(t *testing.T, table string) (leasestore.Store, *faulty.Proxy) {
	t.Helper()
	dsn, proxy := proxied(t)
	open, err := postgres.Opener(func(into any) error {
		*into.(*postgres.Settings) = postgres.Settings{Install: true,
			Config: postgres.Config{Table: table}, URL: dsn}
		return nil
	})
	must(t, err)
	s, err := open()
	must(t, err)
	t.Cleanup(func() { _ = s.(interface{ Close() error }).Close() })
	return s, proxy
}

// TestSilent_ConnectionsCostNoLease lets connections of the pool fall silent, the listening one
// among them, and new ones work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) {
	t.Parallel()
	name := table()
	member := func() faulty.Member {
		s, proxy := configured(t, name)
		return faulty.Member{Store: s, Silence: proxy.Silence}
	}
	faulty.Silent(t, *silences, member(), member())
}

// TestSilent_AListeningConnectionIsNoticed lets a pool that the program has made fall silent.
func TestSilent_AListeningConnectionIsNoticed(t *testing.T) {
	t.Parallel()
	name := table()
	holder := open(t, connect(t), name)
	dsn, proxy := proxied(t)
	db, err := sql.Open("pgx", dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	faulty.Unnoticed(t, holder, faulty.Member{Store: open(t, db, name), Silence: proxy.Silence},
		15*time.Second)
}

// TestSlow_RoundTripsCostNoLease delays what is sent on the way. A connection takes
// five round trips to its first answer, which must fit into Config.OperationTimeout.
func TestSlow_RoundTripsCostNoLease(t *testing.T) {
	faulty.RoundTrips(t, 0.05, func(t *testing.T, delay time.Duration) (holder,
		waiter leasestore.Store) {
		name := table()
		store := func() leasestore.Store {
			s, proxy := configured(t, name)
			proxy.Delay(delay)
			return s
		}
		return store(), store()
	})
}
