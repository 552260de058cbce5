//go:build stores

package postgres_test

import (
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/postgres"
)

// behind returns a proxy for the server, and the DSN of the database behind it. Unless TLS
// is off, pgx makes two connections, one to ask for it.
func behind(t *testing.T) (dsn string, proxy *faulty.Proxy) {
	t.Helper()
	dsn = os.Getenv("CONCORD_POSTGRES")
	cfg, err := pgx.ParseConfig(dsn)
	must(t, err)
	proxy = faulty.New(t, fmt.Sprintf("%s:%d", cfg.Host, cfg.Port))
	return dsn + " host=127.0.0.1 sslmode=disable port=" + proxy.Port(), proxy
}

// proxied opens stores as a configuration file does.
func proxied(*testing.T) func(*testing.T) (leasestore.Store, *faulty.Proxy) {
	name := table()
	return func(t *testing.T) (leasestore.Store, *faulty.Proxy) {
		dsn, proxy := behind(t)
		open, err := postgres.Opener(func(into any) error {
			*into.(*postgres.Settings) = postgres.Settings{Install: true,
				Config: postgres.Config{Table: name}, URL: dsn}
			return nil
		})
		must(t, err)
		s, err := open()
		must(t, err)
		t.Cleanup(func() { _ = s.(interface{ Close() error }).Close() })
		return s, proxy
	}
}

// TestSilent_ConnectionsCostNoLease lets connections of the pool fall silent, the listening one
// among them, and new ones work.
func TestSilent_ConnectionsCostNoLease(t *testing.T) { faulty.Silent(t, proxied) }

// TestSilent_AListeningConnectionIsNoticed lets a pool that the program has made fall silent.
func TestSilent_AListeningConnectionIsNoticed(t *testing.T) {
	t.Parallel()
	name := table()
	holder := open(t, connect(t), name)
	dsn, proxy := behind(t)
	db, err := sql.Open("pgx", dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	faulty.Unnoticed(t, holder, open(t, db, name), proxy, 15*time.Second)
}

// TestSlow_RoundTripsCostNoLease delays what is sent on the way.
func TestSlow_RoundTripsCostNoLease(t *testing.T) { faulty.RoundTrips(t, proxied) }

// TestTrips_OfACall delays what is sent on the way, and counts.
func TestTrips_OfACall(t *testing.T) { faulty.Trips(t, proxied, 1) }

// TestCut_WritesThatWereMadeAreNotRefused closes connections at any moment of a write.
func TestCut_WritesThatWereMadeAreNotRefused(t *testing.T) { faulty.Cut(t, proxied) }

func TestFaults_NeverTwoHolders(t *testing.T) { faulty.NeverTwoHolders(t, proxied, nil) }
