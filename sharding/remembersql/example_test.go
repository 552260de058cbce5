package remembersql_test

import (
	"database/sql"

	"github.com/concord-go/concord/coordination/fence"
	"github.com/concord-go/concord/sharding"
	"github.com/concord-go/concord/sharding/remembersql"
)

// The ids of accounts are in a Postgres database, and not in the memory of every member.
func Example() {
	var db *sql.DB // opened by the program
	_ = sharding.Config{
		Type: "account", Remember: true, RecoverRate: 1000,
		RememberStore: remembersql.Store{DB: db, Placeholder: fence.Dollar},
	}
}
