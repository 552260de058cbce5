// Package remembersql stores the ids of remembered entities in a SQL database. It is a
// sharding.RememberStore for types with more entities than the memory of a member holds:
//
//	sharding.Config{Type: "account", Remember: true, RememberStore: remembersql.Store{
//		DB: db, Placeholder: fence.Dollar}}
//
// The tables are that of fence.Table, and these, which the caller creates once:
//
//	CREATE TABLE concord_remembered (
//		type  VARCHAR(40) NOT NULL,
//		shard INTEGER NOT NULL,
//		id    VARCHAR(512) NOT NULL,
//		PRIMARY KEY (type, shard, id)
//	)
//	CREATE TABLE concord_remembered_calls (
//		type  VARCHAR(40) NOT NULL,
//		shard INTEGER NOT NULL,
//		token BIGINT NOT NULL,
//		seq   BIGINT NOT NULL,
//		PRIMARY KEY (type, shard)
//	)
//
// If the database ignores case, accents or spaces at the end when it compares text, as MySQL does
// by default, give the columns type and id a binary collation.
//
// docs/sharding.md describes remembered entities.
package remembersql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/sharding"
)

// Store is a sharding.RememberStore. Each call is one transaction, which fence.Table admits by the
// token of the tenure, under the resource "concord-remembered", the type and the shard; the table
// concord_remembered_calls has the number of the last call. See fence.Table.Admit for the databases
// that it works with, and for the timeouts that their connections need.
type Store struct {
	// DB is required. Its transactions must not be READ UNCOMMITTED.
	DB *sql.DB
	// Placeholder returns the n-th placeholder of a statement, counting from 1. Default: a question
	// mark, as in SQLite and MySQL; fence.Dollar is for Postgres.
	Placeholder func(n int) string
}

// Load implements sharding.RememberStore.
func (s Store) Load(ctx context.Context, of sharding.ShardTenure) (ids []string, err error) {
	err = s.under(ctx, of, func(tx *sql.Tx) error {
		ids, err = s.ids(ctx, tx, of)
		return err
	})
	return ids, err
}

func (s Store) ids(ctx context.Context, tx *sql.Tx, of sharding.ShardTenure) ([]string, error) {
	rows, err := tx.QueryContext(ctx,
		s.text("SELECT id FROM concord_remembered WHERE type = ? AND shard = ?"), of.Type, of.Shard)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // reported by Err
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// batch is how many ids one statement names. SQLite allows 999 placeholders.
const batch = 250

// Change implements sharding.RememberStore.
func (s Store) Change(ctx context.Context, of sharding.ShardTenure, add, remove []string) error {
	return s.under(ctx, of, func(tx *sql.Tx) error {
		// What is to be added may be there, and no two databases have the same statement for that.
		for ids := range slices.Chunk(slices.Concat(remove, add), batch) {
			args := []any{of.Type, of.Shard}
			for _, id := range ids {
				args = append(args, id)
			}
			if _, err := tx.ExecContext(ctx, s.text(
				"DELETE FROM concord_remembered WHERE type = ? AND shard = ? AND id IN (?"+
					strings.Repeat(", ?", len(ids)-1)+")"), args...); err != nil {
				return err
			}
		}
		for ids := range slices.Chunk(add, batch) {
			var args []any
			for _, id := range ids {
				args = append(args, of.Type, of.Shard, id)
			}
			if _, err := tx.ExecContext(ctx, s.text(
				"INSERT INTO concord_remembered (type, shard, id) VALUES (?, ?, ?)"+
					strings.Repeat(", (?, ?, ?)", len(ids)-1)), args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// under runs do in a transaction, unless the store has had a younger call for the shard.
func (s Store) under(ctx context.Context, of sharding.ShardTenure, do func(*sql.Tx) error) error {
	if s.DB == nil {
		return fmt.Errorf("remembersql: %w: DB is nil", sharding.ErrInvalid)
	}
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("remembersql: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // without effect after Commit
	err = fence.Table{Placeholder: s.Placeholder}.Admit(ctx, tx,
		"concord-remembered/"+of.Type+"/"+strconv.Itoa(of.Shard), of.Token)
	if err == nil {
		err = s.number(ctx, tx, of)
	}
	if err == nil {
		err = do(tx)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("remembersql: shard %d of %q: %w", of.Shard, of.Type, err)
	}
	return nil
}

// number compares and stores the number of a call, while the fence has locked the shard.
func (s Store) number(ctx context.Context, tx *sql.Tx, of sharding.ShardTenure) error {
	token, seq := int64(of.Token), int64(of.Seq)
	result, err := tx.ExecContext(ctx, s.text("UPDATE concord_remembered_calls SET token = ?, seq = ?"+
		" WHERE type = ? AND shard = ? AND (token <> ? OR seq < ?)"),
		token, seq, of.Type, of.Shard, token, seq)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n > 0 {
		return err
	}
	var last int64
	err = tx.QueryRowContext(ctx, s.text("SELECT seq FROM concord_remembered_calls"+
		" WHERE type = ? AND shard = ?"), of.Type, of.Shard).Scan(&last)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = tx.ExecContext(ctx, s.text("INSERT INTO concord_remembered_calls"+
			" (type, shard, token, seq) VALUES (?, ?, ?, ?)"), of.Type, of.Shard, token, seq)
	case err == nil:
		err = fmt.Errorf("%w: call %d after call %d", fence.ErrStale, seq, last)
	}
	return err
}

// text inserts the placeholders into a statement.
func (s Store) text(statement string) string {
	if s.Placeholder == nil {
		return statement
	}
	parts := strings.Split(statement, "?")
	var b strings.Builder
	for i, part := range parts[:len(parts)-1] {
		b.WriteString(part)
		b.WriteString(s.Placeholder(i + 1))
	}
	b.WriteString(parts[len(parts)-1])
	return b.String()
}
