// Package grains runs Proto.Actor's virtual actors, also called grains, in shards under leases, so
// that each of them is active at most once. It is an identity lookup in place of disthash: kinds,
// generated code and callers stay as they are.
//
//	system := actor.NewActorSystem()
//	// in place of disthash.New()
//	lookup, err := grains.New(system, grains.Config{Store: store, MinMembers: 2})
//	if err != nil {
//		return err
//	}
//	c := cluster.New(system, cluster.Configure("shop", provider, lookup, remoteConfig,
//		cluster.WithKinds(accountKind)))
//	c.StartMember()
//	defer c.Shutdown(true)
//
// Store is the lease store of all members, such as that of coordination/etcd. A member that only
// calls grains has none. Under node.Run, which also heals the cluster after a partition:
//
//	node.RunConfig{
//		MinMembers: 2,
//		Store:      openStore,
//		Options:    []cluster.ConfigOption{cluster.WithKinds(accountKind)},
//		Lookup: func(n *node.Node) (cluster.IdentityLookup, error) {
//			return grains.New(n.System, grains.Config{Session: n.Session})
//		},
//	}
//
// # How it works
//
// The kinds of all grains share the shards of one sharding.Region. A grain is the entity whose id
// is its kind, a slash and its identity; a hash of the id is its shard, and the member with the
// lease of the shard activates the grain there. So package sharding decides where a grain is, and
// Proto.Actor still spawns it, with the props of its kind, and carries the requests.
//
// Get asks the home of the shard for the PID of the activation, which begins if there is none. The
// caller caches the PID, and later requests go straight there. When the activation has ended,
// because it stopped itself, was passivated or its shard has moved, its requests become dead
// letters. Proto.Actor answers these, cluster.Request drops the cached PID and calls Get again, and
// Get waits for the next activation. So a request that meets a move is not lost; but see
// Guarantees for requests that were already being handled.
//
// # What a grain can use
//
// The context of a grain is that of an entity. sharding.Self returns its Entity, with the tenure of
// the shard's lease: Check, Token and Context. sharding.Passivate ends the activation once it has
// handled the messages before the call. With Config.Sharding, grains are passivated when they are
// idle or too many, remembered, and placed. The time-out of generated grains works too.
//
//	func (a *account) Deposit(r *Amount, ctx cluster.GrainContext) (*Balance, error) {
//		e, _ := sharding.Self(ctx)
//		if err := e.Check(); err != nil {
//			return nil, err // the lease is lost: another member may have the grain
//		}
//		return a.store(r, e.Token()) // the store rejects lower tokens
//	}
//
// # Duties of the caller
//
//  1. Call New with the same Config.Sharding at every member, and give all members that have a
//     Store or Session all kinds. A kind that some lack answers only where its shard is at a member
//     that has it; so a new kind works once every member has the new version.
//  2. Never run this lookup and another one in a cluster at the same time: grains would be active
//     once by each. Stop all members to change. See docs/virtual-actors.md.
//  3. Those of package sharding: check the tenure before effects, put its token into them, and do
//     not block in a handler for longer than the session's Drain.
//  4. Close the store after the member has stopped.
//
// # Guarantees
//
// They are those of package sharding: an activation handles a message only while the lease of its
// shard is held, and at most one member holds that, under the conditions of package coordination.
// After a crash or in a partition, Get returns nil until the shard has its next home; the bounds
// are in docs/sharding.md. A member that leaves answers for 0.2 s more, so that callers find the
// next activations; a request that comes later may time out, until the caller's member has seen
// that it has left. A request that was sent and not answered may have been handled. A message
// without a sender that meets the end of an activation is lost, as with disthash;
// Region(lookup).Ref delivers such messages to the next activation.
//
// Without node.Run, nothing heals a cluster whose members have dropped each other, no majority
// decides which side of a partition hosts, and remoting is unguarded. Each grain is still active at
// most once; after a partition, one side may have none until its processes are restarted.
//
// # Clients
//
// With cluster.StartClient, a process that is not a member finds grains through the members, whose
// remoting must accept strangers: node.Remote does not. There, use a member without Store and
// Session in place of a client.
//
// # What does not apply
//
// Member strategies: New's lookup refuses a kind with one, because the home of the shard decides
// (see sharding.Config.Strategy, Rendezvous and External). Mailboxes, dispatchers and spawn
// functions of a kind's props are replaced; middleware, context decorators and supervisors are
// kept. Topics of Proto.Actor's PubSub are grains too, and run at the members with a Store or
// Session.
//
// docs/virtual-actors.md is the guide, and examples/grain the program that compares the lookups in
// a partition.
package grains
