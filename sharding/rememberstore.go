package sharding

import (
	"context"

	"github.com/concord-go/concord/coordination"
)

// RememberStore stores which entities are remembered, for Config.RememberStore. With replicated
// data, which is the default, every member holds the ids of all entities in memory; with a store, a
// member holds those of its own shards. All members use the same store, such as a database.
//
// An implementation must:
//
//  1. keep types and shards apart;
//  2. return from Load all ids that successful calls of Change have added and not removed since;
//  3. reject calls with a token below the highest one that the shard has had in any call, without
//     effect: another member has the shard now. After Load has returned, no call with a lower token
//     may have an effect;
//  4. accept repeated calls, as after an error: adding an id that is there and removing one that is
//     not there are no errors;
//  5. have stored a change when Change returns nil, as durably as entities are to be remembered;
//  6. return when ctx ends. Its error leaves open whether the call has had an effect;
//  7. let no call that has ended with an error have an effect after a later call of the same tenure
//     has returned nil: a removal that lands late would remove an entity that was added again. A
//     transaction that locks the shard keeps this rule; a write without one does not.
//
// Package testkit/remembertest tests this, and sharding/remembersql is an implementation. Methods
// are called concurrently, with contexts that end after 3s or with the tenure. After an error or a
// panic the call is repeated while the tenure lasts, and the first messages to entities wait. Ids
// returned by Load that cannot belong to the shard are logged and ignored. An implementation must
// not keep or change the slices.
type RememberStore interface {
	// Load returns the remembered entities of a shard. It is called at the beginning of a tenure.
	Load(ctx context.Context, of ShardTenure) (ids []string, err error)
	// Change adds and removes ids; none is in both.
	Change(ctx context.Context, of ShardTenure, add, remove []string) error
}

// ShardTenure is the tenure of a shard in which a RememberStore is called.
type ShardTenure struct {
	Type  string
	Shard int
	Token coordination.Token
}

// RememberedKeys returns the names of the replicated data that hold the remembered entities of a
// type: an entry for distributeddata.Config.Durable. With it, they are remembered although all
// members stop at once.
func RememberedKeys(typ string) string { return rememberedKeys(typ) + "*" }

func rememberedKeys(typ string) string { return "concord-sharding-" + typ + "/entities-" }
