// Package distributeddata replicates mergeable values (package crdt) between the members of a
// cluster. Every member can always write. Replicas converge once messages get through. Each call
// chooses its own consistency level.
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
// A goroutine that may block uses the methods of Key, Atomically, and loops over changes:
//
//	for c := range Cart.Changes(ctx, dd) {
//		added, removed := c.Value.Diff(c.Old)
//		…
//	}
//
// An actor must not block. It sends messages, and handles every answer in one case:
//
//	dd.Request(ctx, &distributeddata.Subscribe[Items]{Key: Cart, Subscriber: ctx.Self()}) // *Changed[Items], now and after changes
//	dd.Request(ctx, &distributeddata.Update[Items]{
//		Key: Cart, Modify: add("milk"), At: distributeddata.Majority})
//	…
//	case distributeddata.Response:
//		if errors.Is(m.Err(), distributeddata.ErrQuorum) { … }
//
// A Prefix names all entries whose names begin with a given text. It can be listed, iterated and
// subscribed to like a Key. The programs below examples/ show each of these. docs/from-akka.md
// lists the names that other systems use for the same things.
//
// # How it works
//
// Every member with the role runs a replica. A change is applied to the local replica at once,
// takes the next number in the replica's single sequence of events, and is pushed to all other
// replicas, which apply events in causal order. One version vector for all entries records which
// events a replica has seen. A replica that learns from a heartbeat that it has missed events
// requests them. It receives exactly those events, or the whole state if it has missed too many. No
// record of deletions is kept: an atom that the vector covers and the state does not hold was
// removed. docs/replication.md describes the protocol.
//
// # Rejoining
//
// A member that was split off from its cluster has to rejoin under a new member id, in a new actor
// system. node.Run does so in the same process, one incarnation after another. New then returns the
// Replicator of the previous incarnation, bound to the new system, so a handle can be kept across
// incarnations. The Replicator continues with the data it held, under a new replica id. Updates
// made while the member was alone, including those that nobody waited for, reach the other members
// as events of a departed replica. Until the new replica has been refilled, it counts in no quorum.
//
//   - While the member rejoins, for some seconds, Get at Local, Keys and Snapshot show the last
//     state.
//   - Updates and reads at other levels wait for the next incarnation until their context is done,
//     or for Config.OperationTimeout if it has no deadline. They then return node.ErrRejoining:
//     nothing was done.
//   - A pending read continues in the next incarnation. A pending update that was applied returns
//     ErrUnknown: the update is kept and spreads in the next incarnation, but its level may not
//     have been reached.
//   - Subscriptions belong to actors of one incarnation and end with it. Loops over Changes
//     continue.
//   - After the last incarnation every operation returns ErrClosed.
//
// # Which members are counted
//
// Majorities are counted over the members that the cluster remembers, not over those that a member
// currently sees. A member that vanishes is counted until it is back, until a process replaces it
// under its name (Config.Member) or address, or until a majority of the remembered members,
// including the vanished one in the count, has agreed to continue without it. That agreement is
// sought after Config.ForgetAfter, when a member stops in order, and when Forget is called. A
// new member counts once a majority has admitted it. A minority can therefore neither shrink nor
// grow itself into a majority: it can still read and write locally, and its majority operations
// fail until it is connected again.
//
// An acknowledged majority write is seen by every later majority read as long as a majority of the
// remembered members keeps running. State is in memory, unless Config.Durable names its keys: if a
// majority crashes before it has been refilled, data that only those members held in memory is
// lost. Two clusters must never begin side by side; Config.MinMembers prevents it.
//
// # Guarantees
//
// docs/guarantees.md has a paragraph for each guarantee, with its limits and the tests that check
// it.
//
//   - An update or a read sees every earlier update made through the same member.
//
//   - An update is seen as a whole or not at all, and never before an update that its author had
//     seen, whatever entries the two change. An update made with Atomically may change several
//     entries.
//
//   - A write at Majority that returned nil is seen by every Majority read that begins afterwards.
//     It survives as long as a majority of the counted members runs and has been refilled
//     (TestHistories_WhereMembersComeAndGo in internal/core).
//
//   - The result of a Linearizable read is seen by every Linearizable read that begins afterwards
//     (TestQuorums_CountersAreLinearizable).
//
//   - Replicas that have seen the same updates hold the same state, to the byte.
//
//   - Replicas that should be equal but differ are detected by their fingerprints on every
//     heartbeat. The outvoted replica takes the state of the others (TestDivergence in
//     internal/core).
//
//   - Removed or deleted data comes back only through an update that had not seen the removal.
//
//   - Writes made while a member was split off reach the other members once it has rejoined in
//     another incarnation: TestRejoin_WritesMadeAloneReachTheOthers.
//
// The guarantees hold under loss, duplication and reordering of messages, under partitions, and
// when members are killed and restarted. TestHistories in internal/core checks them after every
// step of thousands of seeded histories.
//
// # Observability
//
// Status, and the metrics named there, describe the condition of a replica. If its context has a
// recorded OpenTelemetry span, a direct call that may wait for other members or for the disk is a
// span too, created by the same tracer provider. The spans are named concord.ddata.get, .update,
// .delete and .atomically. Their attributes are concord.ddata.replicator, .key, .level and
// .outcome; if the level was not reached, .answered, .needed and .missing are added. A message is
// such a span if its sender has set Span. Keys appear in spans; values never do.
// The histogram
// concord.ddata.operation.duration records the duration in seconds of these calls and of the
// messages that actors send, by operation, level and outcome. Calls that are answered at once are
// neither measured nor traced.
//
// The histogram concord.ddata.convergence records how long updates take to reach other members, in
// seconds: from the commit of an update at this member to the moment at which the confirmations of
// a majority, or of all, of the counted members have arrived here (attribute level; keys is
// volatile or durable). The time includes the way of the confirmation back. Both moments are of
// this member's clock, so clocks need not agree, and no message carries anything for it. At most
// one update a second is measured for each level, and none while the previous one is still on its
// way; with a member cut off or crashed, the next value of all is the time until it is back or
// forgotten. An update is followed for at most an hour. Nothing is measured without
// Config.MinMembers.
//
// # What is not guaranteed
//
//   - Two members may change an entry at the same time; the entry's type decides how the changes
//     merge. Use a lease where only one member may act.
//   - A Local update that no other member has received is lost with its process. Close waits until
//     another member has received it, and otherwise names the keys concerned. Entries that
//     Config.Durable does not name live in memory: they are lost if all members stop.
//   - Two decisions cannot be automated: how many members must be together before a cluster may
//     begin (Config.MinMembers), and that a majority is lost for good (Replicator.Forget with
//     Force).
//
// docs/replicated-data.md is the guide. The programs examples/counter, examples/cart and
// examples/registry are good to begin with.
package distributeddata
