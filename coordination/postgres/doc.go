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
// The table concord_leases has a row per lease name, which is replaced by conditional updates and never
// deleted, and a row per session, which is what the session renews for all its leases, and deletes in the
// end. The sequence concord_leases_version gives every state of every row a number of its own.
// Names and owners are text; what PostgreSQL's text cannot hold is escaped with a backslash. The column
// renewed is for people: no decision rests on the server's calendar clock, which may be set, and is
// another one after a failover. Contenders count the holder's TTL on their own monotonic clocks.
//
// The unlogged table concord_leases_queue has a row per lease that sessions with Config.Fair wait for: who they are,
// in order. A crash of the server may empty it, which costs order and nothing else.
//
// The table concord_leases_documents has a row per document (coordination.Documents). Store.Install creates it also where
// the other tables exist; until then documents are refused, and leases work.
//
// # Guarantees
//
// Each write is one statement, in a transaction of its own, conditional on the version of the row: of
// all contenders one wins. Tokens rise by one. They begin above the sequence, so that after somebody has deleted
// a row they go on above every token the name had. Only who resets the sequence too begins again.
//
// A release wakes who waits for the lease through LISTEN and NOTIFY. The store listens on one connection
// of the pool for all leases, while anybody waits, and renewals do not notify. Where listening does
// not work (a pooler in transaction mode) sessions find releases by polling.
//
// With the database away nobody acquires or renews, and holders stop in time. The server must be durable:
// with synchronous_commit=off, or after a failover to an asynchronous replica, acknowledged writes may be
// gone, and a lease may have two holders until the first one's next renewal; tokens may repeat. Use
// synchronous_commit=on, and synchronous replicas if you fail over.
//
// # Duties
//
// SELECT, INSERT and UPDATE on the table, and USAGE and SELECT on the sequence, are enough. Without DELETE
// a row per closed session stays. Config.Fair needs all four on the table of queues, and documents need SELECT, INSERT and
// UPDATE on theirs. Give the pool at
// least two connections: one may be listening. The pool must be one of pgx to listen; with another
// driver that takes $1 for a parameter, everything else works.
package postgres
