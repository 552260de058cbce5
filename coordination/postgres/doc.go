// Package postgres keeps leases in a table of PostgreSQL, version 12 or later, through database/sql
// and the pgx driver.
//
//	db, err := sql.Open("pgx", "postgres://shop@db/shop") // import _ "github.com/jackc/pgx/v5/stdlib"
//	store, err := postgres.New(db, postgres.Config{})
//	err = store.Install(ctx) // once, or apply Store.Schema with your own migrations
//	session, err := coordination.Open(store, coordination.Config{})
//	defer store.Close() // after session.Close, before db.Close
//
// # What is in the database
//
// The table concord_leases has one row for each lease name, which is replaced by conditional
// updates and never deleted, and one row for each session, which the session renews for all its
// leases and deletes when it ends. The sequence concord_leases_version gives every state of every
// row a unique number. Names and owners are text; characters that PostgreSQL's text cannot hold are
// escaped with a backslash. The column renewed is for people: no decision depends on the server's
// wall clock, which may be set, and changes with a failover. Contenders count the holder's TTL on
// their own monotonic clocks.
//
// The table concord_leases_documents has one row for each document (leasestore.Documents).
// Store.Install creates it also if the other tables already exist; until then documents are
// refused, and leases work.
//
// # Guarantees
//
// Each write is one statement, in a transaction of its own, conditional on the version of the row,
// so exactly one contender wins. Writes of several leases that a session makes at the same time
// share a statement, in which each has its own condition: PostgreSQL makes commits with
// notifications one after another. Tokens rise by one. They begin above the sequence, so if someone
// deletes a row, they continue above every token that the name had. Tokens start again only if the
// sequence is reset too.
//
// A release wakes the waiters for the lease through LISTEN and NOTIFY. While there is a waiter, the
// store listens on one connection of the pool for all leases; renewals send no notification. Where
// listening does not work (a pooler in transaction mode), sessions notice releases by polling.
//
// While the database is unavailable no session acquires or renews, and holders stop in time. The
// server must be durable: with synchronous_commit=off, or after a failover to an asynchronous
// replica, acknowledged writes may be lost; then a lease may have two holders until the first one's
// next renewal, and tokens may repeat. Use synchronous_commit=on, and synchronous replicas if you
// fail over.
//
// # Duties
//
// SELECT, INSERT and UPDATE on the table, and USAGE and SELECT on the sequence, are enough. Without
// DELETE, one row stays behind for each closed session. Documents, and with them Config.Fair, need
// SELECT, INSERT and UPDATE on their table. Give the pool at least two connections, because one may
// be listening, and a bound (SetMaxOpenConns). Rows that are read at the same time share up to four
// statements. Only a pool of pgx can listen; with another driver whose placeholders are $1,
// everything else works.
//
// A call of the store that Opener makes takes one round trip. With a pool of your own, pgx prepares
// each statement on each connection first, asks a connection that was idle for an answer, and
// closes one whose call has ended without an answer. On a slow way set default_query_exec_mode=exec
// in the DSN, stdlib.OptionShouldPing, and SetMaxIdleConns.
//
// docs/stores.md compares the stores, and docs/leases.md is the guide to leases.
package postgres
