// Package distributeddata replicates values that merge (package crdt) between the members of a cluster:
// always writable, the same everywhere once messages get through, at a consistency chosen per call.
//
//	var Cart = distributeddata.NewKey("cart-17", crdt.ORSet[string]{})
//
//	dd, err := distributeddata.New(system, distributeddata.Config{MinMembers: 3}) // before the member starts
//	…
//	_, err = Cart.Update(ctx, dd, func(w *crdt.Writer, items *crdt.ORSet[string]) error {
//		items.Add(w, "milk")
//		return nil
//	}, distributeddata.Majority)
//	items, err := Cart.Get(ctx, dd) // local, never waits
//
// A goroutine that may wait uses the methods of Key, and Atomically, and loops over changes:
//
//	for c := range Cart.Changes(ctx, dd) {
//		added, removed := c.Value.Diff(c.Old)
//		…
//	}
//
// An actor, which must not wait, sends messages, which a Key makes, and takes every answer in one case:
//
//	dd.Request(ctx, Cart.SubscribeMessage(ctx.Self())) // *Changed[Items], now and after changes
//	dd.Request(ctx, Cart.UpdateMessage(add("milk"), distributeddata.Majority))
//	…
//	case distributeddata.Response:
//		if m.Outcome() == distributeddata.NotReached { … }
//
// A Prefix names all entries whose names begin with a text. It is listed, looped over and subscribed to as a Key is.
// The programs below examples/ show each of these; docs/from-akka.md has what other systems call what.
//
// # How it works
//
// Every member with the role runs a replica. A change is applied to the own replica at once, takes the
// next number of the replica's one sequence of events, and is pushed to all others, which apply events
// in causal order. A version vector, one for all entries, says what a replica has seen. Whoever sees
// from a heartbeat that it has missed something asks, and gets exactly that, or the whole state if it
// has missed too much. Nothing is kept to know what was deleted: what the vector covers and the state
// does not hold is gone. The protocol is in docs/replication.md.
//
// # Several lives of one process
//
// A member that was split off from its cluster has to come back under a new member id, in a new actor system.
// node.Run does so in the same process, one life after another. New then returns the Replicator of the former life,
// bound to the new system, so that a handle that was kept works in every life. It goes on with what it held, under a
// new replica id: what was written alone reaches the others as the events of a replica that has departed, updates that
// nobody waited for included. Until it has been refilled it counts in no quorum.
//
//   - Between two lives, some seconds, Get at Local, Keys and Snapshot show what was there last.
//   - Updates and reads at other levels wait for the next life until their context ends, or for
//     Config.OperationTimeout if it has no deadline, and then return ErrBetweenLives: nothing was done.
//   - A read under way goes on in the next life. An update under way that was applied returns ErrUnknown: it is kept,
//     and spreads in the next life, but its level is not known.
//   - Subscriptions belong to actors of a life, and end with it. Loops over Changes go on in the next.
//   - After the last life everything returns ErrClosed.
//
// # Who is counted
//
// Majorities are counted over the members that the cluster remembers, not over those that a member happens to see. A
// member that vanishes is counted until it is back, is replaced under its name (Config.Member) or address, or a
// majority of those remembered, it included, has agreed to go on without it: by itself after Config.ForgetAfter, when
// it stops in order, or when Forget is called. A newcomer counts once a majority has admitted it. So a minority can
// neither shrink itself into a majority nor grow into one: it goes on reading and writing locally, and its majority
// operations fail until it is connected again.
//
// An acknowledged majority write is seen by every later majority read as long as a majority of the remembered members
// keeps running. State is in memory, unless Config.Durable names its keys: if a majority crashes before it has been
// refilled, what only it held in memory is gone. And
// no cluster may begin beside one that is there: see Config.MinMembers.
//
// # Guarantees
//
// docs/guarantees.md has a paragraph for each of these, with its limits and the tests that hold it.
//
//   - An update or a read sees every earlier update made through the same member.
//
//   - All of an update is seen, or nothing of it, and never before an update that its maker had seen,
//     whatever entries the two are of. With Atomically an update is of several entries.
//
//   - A write at Majority that returned nil is seen by every Majority read that begins afterwards, and
//     survives as long as a majority of the members that are counted runs and has been refilled
//     (TestHistories_WhereMembersComeAndGo in internal/core).
//
//   - What a Linearizable read returned is seen by every Linearizable read that begins afterwards
//     (TestQuorums_CountersAreLinearizable).
//
//   - Replicas that have seen the same updates hold the same state, to the byte.
//
//   - Replicas that should be equal and are not are found out by their fingerprints, on every heartbeat, and
//     the one that is outvoted takes the state of the others (TestDivergence in internal/core).
//
//   - What was removed or deleted does not come back, but with an update that had not seen the removal.
//
//   - What a process wrote while its member was split off reaches the others when it has joined again in
//     another life: TestLives_WhatWasWrittenAloneReachesTheOthers.
//
// They hold under loss, duplication and reordering of messages, under partitions, and when members are
// killed and restarted: TestHistories in internal/core asserts them after every step of thousands of
// seeded histories.
//
// # Seeing it
//
// Status, and the metrics that are named there, say how a replica is. A direct call that may wait, for others or for the
// disk, is a span of OpenTelemetry if its context has one that is recorded, made by the same tracer provider:
// concord.ddata.get, .update, .delete and .atomically, with the attributes concord.ddata.replicator, .key, .level and
// .outcome, and of a level that was not reached .answered, .needed and .missing. The histogram
// concord.ddata.operation.duration has the seconds of these and of the messages that actors send, by operation, level and
// outcome. What is answered at once is neither measured nor traced.
//
// # What is not guaranteed
//
//   - Two members may change an entry at the same time; its type decides what comes of it. For "only
//     one may", use a lease.
//   - A Local update that no other member has received is lost with its process. Close waits until one has, and
//     says which keys are concerned if none does. Entries that Config.Durable does not name live in memory: if all members
//     stop, they are gone.
//   - Two things nobody can decide for you: how many members must be together before a cluster may begin
//     (Config.MinMembers), and that a majority is lost for good (Replicator.Forget with Force).
package distributeddata
