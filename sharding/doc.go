// Package sharding runs many entities, actors with an id, over the members of a cluster: each is alive once, at one member,
// and is found from every member by its id. Entities are divided into shards, each of which is guarded by a lease.
//
//	session, err := coordination.Open(store, coordination.Config{})
//	...
//	system := actor.NewActorSystem()
//	c := cluster.New(system, node.Cluster("shop", provider, rc, node.Roles("backend")))
//	data, err := distributeddata.New(system, distributeddata.Config{MinMembers: 2})
//	...
//	accounts, err := sharding.New[Command](system, session, data, sharding.Config{Type: "account", Role: "backend"},
//		func(e sharding.Entity) actor.Actor { return &account{Entity: e} })
//	...
//	if err := node.Start(ctx, c); err != nil {
//		return err
//	}
//	defer node.Shutdown(context.Background(), c) // gives the shards to others
//
//	ann := accounts.Ref("ann")
//	err = ann.Tell(&Deposit{Amount: 10})
//	reply, err := ann.Ask(ctx, &GetBalance{})
//
// # How it works
//
// A lease for each shard says which member may run it; a table says which one should. The coordinator, a singleton,
// writes the table and does nothing else. Each member brings what it runs in line with it. A shard moves between two
// members directly: the old one asks the others to hold back, lets its entities handle what they have, stops them,
// releases the lease and says so; the new one acquires, and says that messages may come. Until then they wait where they
// were sent. An entity is made when there is a message for it. docs/sharding.md has the rules, and their reasons.
//
// Shards are assigned evenly. They stay where they are while the members stay the same, also when the coordinator moves;
// when a member comes, some move to it, a few at a time: see Config.MaxMoves and Config.StableAfter.
//
// # Duties of the caller
//
//  1. Call New with the same Config on every member with the role before the member starts, and NewProxy elsewhere. A
//     member with the role that did not call New would be waited for. Between the lives of a member, under node.Run,
//     call New again.
//  2. The replicator runs on all these members, proxies included. It carries the table of shards.
//  3. Messages that may cross between members are protobuf messages. So are replies: remoting loses others with no more
//     than a line in the log.
//  4. Put the token of the Entity into every effect outside it, and have the target refuse lower ones; or at least call
//     Entity.Check before each. In Stopping and Stopped, too: they come after a loss of the lease as well.
//  5. Do not block in Receive for longer than the Drain of the session's configuration.
//  6. Close the session after the region. node.Shutdown, or Close, does the part of the region.
//  7. Use a lease store that keeps session records: with others each shard's lease is renewed by itself.
//
// # What is guaranteed
//
// An entity is alive at one member at most if clocks run at rates as promised to the lease, and each Receive returns within
// Drain. Each message is handed to an entity only while Tenure.Check is nil. Tokens of the incarnations of an entity never
// fall.
//
//   - A member leaves, or a shard moves for balance: no message is lost, as long as every member answers within a second
//     and entities end within Config.HandOff.
//   - Crash of a member: what its entities had in their mailboxes, and what was on the way there, is lost. Its shards are
//     assigned again once the provider has dropped it, and run when its leases are stale: TTL·(1+clock rate error) and
//     margin after its last renewal was seen by a member that knew it.
//   - Pause of a member (garbage collection, SIGSTOP): when it wakes, an entity may go on with the message it was
//     handling although another one lives by now. Check knows at once, the token protects; nothing else is handled.
//   - Receive that does not return: in a planned move the shard stays dark and the lease is kept until it has returned.
//     After a loss another member may have the entity by then; only the token protects.
//   - Partition: a member that does not hear the coordinator for Config.OrphanAfter, and finds that another living
//     session holds its lease, gives its shards up. While no other coordinator is there, it keeps them.
//   - Loss of the store: entities stop Drain before the validity of the leases ends; homes stay as they are, and messages
//     wait up to Config.Buffer. If the store answers others, they take over.
//   - Removal of the member from its cluster: it stops its entities at once, releases the leases, and hosts nothing any
//     more in this life.
//
// # Messages
//
// A message is delivered at most once. Of one sender's messages to one entity, sent through one member, a later one never
// overtakes an earlier one; when a host is lost, there may be gaps. An entity that stops itself, or is passivated, leaves
// what it has not handled to its next incarnation. What cannot be delivered goes to the dead letters of the member that
// finds out, is counted in Stats, and Ask tells.
package sharding
