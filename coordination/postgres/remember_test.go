//go:build stores

package postgres_test

import (
	"testing"

	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/remembersql"
	"github.com/concord-go/concord/testkit/remembertest"
)

// Package sharding/remembersql on a real PostgreSQL, whose transactions run side by side.
func TestRememberSQL(t *testing.T) {
	remembertest.Run(t, func(t *testing.T) (a, b sharding.RememberStore) {
		db := connect(t)
		for _, statement := range []string{
			"DROP TABLE IF EXISTS concord_fence, concord_remembered, concord_remembered_calls",
			"CREATE TABLE concord_fence (resource VARCHAR(255) NOT NULL PRIMARY KEY, token BIGINT NOT NULL, writes BIGINT NOT NULL)",
			"CREATE TABLE concord_remembered (type VARCHAR(40) NOT NULL, shard INTEGER NOT NULL, id VARCHAR(512) NOT NULL, PRIMARY KEY (type, shard, id))",
			"CREATE TABLE concord_remembered_calls (type VARCHAR(40) NOT NULL, shard INTEGER NOT NULL, token BIGINT NOT NULL, seq BIGINT NOT NULL, PRIMARY KEY (type, shard))",
		} {
			_, err := db.ExecContext(t.Context(), statement)
			must(t, err)
		}
		return remembersql.Store{DB: db, Placeholder: fence.Dollar},
			remembersql.Store{DB: connect(t), Placeholder: fence.Dollar}
	})
}
