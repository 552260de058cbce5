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
//  3. reject a call that is older than another one that the shard has had: one with a lower Token,
//     or with the same Token and a lower Seq. It must have no effect, also if its context has ended
//     since and it arrives late. After a call has returned nil, no older call may have an effect;
//  4. accept repeated calls, as after an error: adding an id that is there and removing one that is
//     not there are no errors;
//  5. have stored a change when Change returns nil, as durably as entities are to be remembered;
//  6. return when ctx ends. Its error leaves open whether the call has had an effect.
//
// Rule 3 takes a Token and a Seq for each shard, in the same atomic step as the ids. Without the
// Token, a removal by the former home removes an entity that runs at the new one; without the Seq,
// a removal that timed out removes an entity that has been added again since.
//
// If the calls of a member fail for some seconds and none succeeds, its shards move to members
// where calls succeed, if there are any, and messages that wait for the store are refused. From
// time to time the member is tried again with one shard.
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

// ShardTenure says for which shard a RememberStore is called, and when: in the tenure with this
// Token, as the call with this Seq. A later tenure has a higher Token. A later call of the same
// tenure has a higher Seq, also if it repeats one that has failed.
type ShardTenure struct {
	Type  string
	Shard int
	Token coordination.Token
	Seq   uint64
}

// RememberedKeys returns the names of the replicated data that hold the remembered entities of a
// type: an entry for distributeddata.Config.Durable. With it, they are remembered although all
// members stop at once.
func RememberedKeys(typ string) string { return rememberedKeys(typ) + "*" }

func rememberedKeys(typ string) string { return "concord-sharding-" + typ + "/entities-" }
