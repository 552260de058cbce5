// Package sharding distributes entities, which are actors with an id, over the members of a
// cluster. Each entity is alive once, on one member, and can be reached from every member by its
// id. Entities are divided into shards, and each shard is guarded by a lease.
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
//	balance, err := sharding.As[*Balance](ann.Ask(ctx, &GetBalance{}))
//
// # How it works
//
// The lease of each shard says which member may run it; a table says which member should. The
// coordinator, a singleton, writes the table and does nothing else. Each member brings the shards
// that it runs in line with the table. A shard moves directly between two members. The old home
// asks the other members to hold messages back, lets its entities handle the messages they have,
// stops them, releases the lease and reports that. The new home acquires the lease and announces
// that it accepts messages. Until then messages wait where they were sent. An entity is created
// when there is a message for it. The comment of package internal/core has the rules.
// docs/sharding.md is the guide.
//
// Shards are assigned evenly. They stay where they are while the members stay the same, also when
// the coordinator moves. When a member joins, some shards move to it, a few at a time: see
// Config.MaxMoves and Config.StableAfter.
//
// # Duties of the caller
//
//  1. Call New with the same Config on every member that may host, before the member starts, and
//     NewProxy on others that send. A member with the role that calls neither, as in a rolling
//     update that adds or removes the type, hosts nothing. In the next incarnation of a member
//     under node.Run, call New again.
//  2. Run the replicator on all these members, including proxies. It carries the table of
//     shards.
//  3. Reply with protobuf messages: remoting drops others with only a line in the log.
//  4. Put the token of the Entity into every external effect, and make the target reject lower
//     tokens; or at least call Entity.Check before each effect. This includes effects in Stopping
//     and Stopped, which are also received after a loss of the lease.
//  5. Do not block in Receive for longer than the Drain of the session's configuration.
//  6. Close the session after the region. node.Shutdown, or Close, stops the region.
//  7. Use a lease store that keeps session records: with others, each shard's lease is renewed
//     separately, and after a crash shards come back after up to four TTLs.
//
// # Guarantees
//
// An entity is alive on at most one member if clocks run at the rates promised to the lease, and
// each Receive returns within Drain. Each message is passed to an entity only while Tenure.Check
// returns nil. The tokens of an entity's successive incarnations never decrease.
//
//   - A member leaves, or a shard moves for balance: no message is lost, as long as every member
//     answers within a second and entities stop within Config.HandOff.
//   - A member crashes: the messages in the mailboxes of its entities, and those on the way to
//     them, are lost. Its shards are assigned again once the provider has dropped the member, and
//     run when its leases are stale: TTL·(1+clock rate error) plus margin after a member that knew
//     it saw its last renewal.
//   - A member pauses (garbage collection, SIGSTOP): when it resumes, an entity may continue with
//     the message it was handling although another incarnation is already alive. Check fails at
//     once, and the token protects the target; no further message is handled.
//   - A Receive does not return: in a planned move the shard stays unavailable and the lease is
//     kept until it has returned or, if the session of the member is closed first, until the lease
//     has expired. After that, and after a loss of the lease, another member may have the entity;
//     only the token protects the target.
//   - Partition: under node.Run the side with a majority of the members hosts, and every other side
//     gives up its shards; see docs/operations.md. A member that is not missing, but does not hear
//     the coordinator for Config.OrphanAfter, and finds that another living session holds the
//     coordinator's lease, gives up its shards too. While there is no other coordinator, it keeps
//     them.
//   - The store fails: entities stop one Drain before their leases expire; homes stay as they are,
//     and messages wait up to Config.Buffer. If the store still answers other members, those take
//     over.
//   - The member is removed from its cluster: it stops its entities at once, releases the leases,
//     and hosts nothing more in this incarnation.
//
// # Messages
//
// Tell, Request and Ask deliver a message at most once. Ref.Deliver delivers at least once: it
// sends the message again until the entity has handled it, so the entity may see it again, with
// Delivery.Again. Of the messages that one sender sends to one entity through
// one member, a later one never overtakes an earlier one; when a host is lost, there may be gaps.
// Messages that an entity has not handled when it stops itself or is passivated go to its next
// incarnation. A message that cannot be delivered becomes a dead letter on the member that detects
// it and is counted in Stats; Ask returns an error.
//
// Remembered entities (Config.Remember) run without messages once they have received one. Their ids
// are replicated data, or in a RememberStore.
//
// Programs: examples/bank, examples/lobby and, for workers, examples/daemons.
package sharding
