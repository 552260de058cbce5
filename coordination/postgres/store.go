package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

const (
	maxName  = 2048 // of the escaped name: PostgreSQL cannot index much more
	maxTable = 50   // the name of its sequence is longer, and must be below 64
)

// Config is the configuration of a store.
type Config struct {
	// Table holds the leases: lower-case letters, digits and underscores, optionally after a schema
	// and a dot, at most 50 bytes in all. The names of its sequence, its table of documents
	// and its channel are derived from it. Default "concord_leases".
	Table string `yaml:"table"`
}

// validate checks the configuration. The error is coordination.ErrInvalid.
func (c Config) validate() error {
	if c.Table != "" && (len(c.Table) > maxTable || !tableName.MatchString(c.Table)) {
		return fmt.Errorf("postgres: %w: Table %.80q must be of a-z, 0-9 and _, perhaps after a schema and a dot, at most %d bytes",
			coordination.ErrInvalid, c.Table, maxTable)
	}
	return nil
}

var tableName = regexp.MustCompile(`^([a-z_][a-z0-9_]*\.)?[a-z_][a-z0-9_]*$`)

// Store keeps leases in a table. It may be used by many goroutines and sessions. Use New.
type Store interface {
	leasestore.Store
	leasestore.Watcher
	leasestore.SessionKeeper
	leasestore.Remover
	leasestore.Documents
	leasestore.Batcher

	// Close stops listening. Close the sessions on the store first.
	Close() error

	// Install creates tables and sequence unless they exist. It needs the right to create them.
	Install(ctx context.Context) error

	// Schema returns the statements of Install, for callers that apply schema changes themselves.
	Schema() string
}

type store struct {
	db     *sql.DB
	table  string
	load   string
	insert string
	update string
	batch  string
	remove string

	loadDocument, insertDocument, updateDocument string

	listener         listener
	pool             *pool // of Opener, or nil
	leases, sessions reads
}

// New returns a store on a pool of connections. The caller keeps the pool.
func New(db *sql.DB, c Config) (Store, error) {
	s, err := newStore(db, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func newStore(db *sql.DB, c Config) (*store, error) {
	if db == nil {
		return nil, fmt.Errorf("postgres: %w: db is nil", coordination.ErrInvalid)
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Table == "" {
		c.Table = "concord_leases"
	}
	s := &store{db: db, table: c.Table}
	s.statements()
	s.listener.db, s.listener.channel = db, c.Table
	return s, nil
}

// Close stops listening. Close the sessions on the store first.
func (s *store) Close() error {
	s.listener.close()
	s.leases.wg.Wait()
	s.sessions.wg.Wait()
	return nil
}

// Install creates tables and sequence unless they exist. It needs the right to create them.
func (s *store) Install(ctx context.Context) error {
	if err := s.inTransaction(ctx, func(tx *sql.Tx) error {
		// "if not exists" is not safe against a concurrent Install.
		if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock(hashtext($1))",
			s.table); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, s.Schema())
		return err
	}); err != nil {
		return fmt.Errorf("postgres: table %s: %w", s.table, err)
	}
	return nil
}

// Schema returns the statements of Install, for callers that apply schema changes themselves.
func (s *store) Schema() string {
	return fmt.Sprintf(`CREATE SEQUENCE IF NOT EXISTS %[1]s_version;
CREATE TABLE IF NOT EXISTS %[1]s (
	name    text COLLATE "C" PRIMARY KEY, -- of the lease
	owner   text NOT NULL,         -- for people
	nonce   text NOT NULL,         -- of the holder's session, and how it keeps the lease; empty: nobody holds it
	token   bigint NOT NULL CHECK (token >= 0),
	attempt numeric(20) NOT NULL,  -- counts the writes of one tenure
	ttl     bigint NOT NULL CHECK (ttl >= 0), -- nanoseconds
	version bigint NOT NULL DEFAULT nextval('%[1]s_version'),
	renewed timestamptz NOT NULL DEFAULT clock_timestamp() -- for people
);
CREATE TABLE IF NOT EXISTS %[1]s_documents (
	name    text COLLATE "C" PRIMARY KEY, -- of the document
	content bytea NOT NULL,
	version bigint NOT NULL DEFAULT nextval('%[1]s_version'),
	written timestamptz NOT NULL DEFAULT clock_timestamp() -- for people
)`, s.table)
}

// mark is the version of a row: its number and the transaction that wrote it, so that a manual
// change of a row also changes its version.
const mark = "version || '.' || xmin::text"

// statements prepares the statements. A write sends a notification, in the same transaction, unless
// it renews a lease. The renewals of session records are reported: a session that waits for a lease
// counts the TTL from when it has seen the last one.
func (s *store) statements() {
	s.load = s.loadStatement()
	s.insert = fmt.Sprintf(`WITH written AS (
	INSERT INTO %[1]s (name, owner, nonce, token, attempt, ttl) VALUES ($1, $2, $3, $4, $5::text::numeric, $6)
	ON CONFLICT DO NOTHING RETURNING %[2]s AS mark)
SELECT mark, pg_notify($7, $1)::text FROM written`, s.table, mark)
	s.update = fmt.Sprintf(`WITH renewal AS (SELECT FROM %[1]s WHERE name = $1 AND %[2]s = $8 AND token = $4 AND nonce = $3
	AND left($1, length('%[3]s')) <> '%[3]s'),
written AS (
	UPDATE %[1]s SET owner = $2, nonce = $3, token = $4, attempt = $5::text::numeric, ttl = $6,
		version = nextval('%[1]s_version'), renewed = clock_timestamp()
	WHERE name = $1 AND %[2]s = $8 RETURNING %[2]s AS mark)
SELECT mark, CASE WHEN EXISTS (SELECT FROM renewal) THEN '' ELSE pg_notify($7, $1)::text END FROM written`, s.table, mark,
		escape(leasestore.SessionRecords))
	s.batch = s.batchStatement()
	s.documentStatements()
	s.remove = fmt.Sprintf("DELETE FROM %[1]s WHERE name = $1 AND %[2]s = $2", s.table, mark)
}

// Load implements leasestore.Store.
func (s *store) Load(ctx context.Context,
	name string) (leasestore.Record, leasestore.Version, error) {
	text := escape(name)
	if len(text) > maxName {
		return leasestore.Record{}, "", tooLong(name)
	}
	r, err := s.row(ctx, name, text)
	if err != nil {
		return leasestore.Record{}, "", fmt.Errorf("postgres: lease %.80q: %w", name, err)
	}
	rec := leasestore.Record{Token: coordination.Token(r.token), TTL: time.Duration(r.ttl)}
	var errs [3]error
	rec.Owner, errs[0] = unescape(r.owner)
	errs[1] = readHolder(r.nonce, &rec)
	rec.Attempt, errs[2] = strconv.ParseUint(r.attempt, 10, 64)
	if err := errors.Join(errs[:]...); err != nil {
		return leasestore.Record{}, "", fmt.Errorf("%w: postgres: lease %.80q: %w",
			leasestore.ErrDamaged, name, err)
	}
	return rec, leasestore.Version(r.version), nil
}

// Swap implements leasestore.Store.
func (s *store) Swap(ctx context.Context, name string, old leasestore.Version,
	next leasestore.Record) (leasestore.Version, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	text := escape(name)
	if len(text) > maxName {
		return "", tooLong(name)
	}
	args := []any{text, escape(next.Owner), holder(next), int64(next.Token),
		strconv.FormatUint(next.Attempt, 10),
		int64(next.TTL), s.listener.channel}
	query := s.insert
	if old != "" {
		query, args = s.update, append(args, string(old))
	}
	version, err := ask(ctx, s.pool, name,
		func(ctx context.Context) (version string, err error) {
			var notified any
			err = s.db.QueryRowContext(ctx, query, args...).Scan(&version, &notified)
			return version, err
		})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", leasestore.ErrConflict
	case err != nil:
		return "", outcome(err)
	}
	return leasestore.Version(version), nil
}

// KeepsSessions implements leasestore.SessionKeeper.
func (s *store) KeepsSessions() bool { return true }

// Remove implements leasestore.Remover.
func (s *store) Remove(ctx context.Context, name string, old leasestore.Version) error {
	done, err := ask(ctx, s.pool, name, func(ctx context.Context) (sql.Result, error) {
		return s.db.ExecContext(ctx, s.remove, escape(name), string(old))
	})
	if err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return errors.Join(leasestore.ErrConflict, err)
	}
	return nil
}

// inTransaction runs do in a transaction and commits it, unless do fails.
func (s *store) inTransaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func tooLong(name string) error {
	return fmt.Errorf("%w: postgres: name %.20q… of %d bytes is more than %d as text",
		leasestore.ErrRefused, name, len(name), maxName)
}

// outcome classifies an error: ErrRefused if certainly nothing was written. A statement that the
// server answers with an error is rolled back, except for errors of the connection or of a server
// that is shutting down.
func outcome(err error) error {
	var answered *pgconn.PgError
	if errors.As(err, &answered) && len(answered.Code) == 5 {
		switch class := answered.Code[:2]; {
		case class == "08", class == "57", class == "58", class == "XX":
			// connection, operator intervention, system, internal
		case answered.Code == "40003": // statement completion unknown
		default:
			return fmt.Errorf("%w: postgres: %w", leasestore.ErrRefused, err)
		}
	}
	return fmt.Errorf("postgres: %w", err)
}
