// Package core is the sharding protocol without a clock, a network, a lease or an actor:
// deterministic state machines that turn events into effects. Simulation, exhaustive exploration
// and planted bugs (lab/mutants) test the code against the rules below, which they name.
// Text after "Else" is a history that happens without the rule; most were found by the
// simulation.
//
// The lease of each shard says which region may run it; a table says which one should. An
// Allocation, at the coordinator, writes the table and does nothing else. A Region, on each
// member, compares the table with its own state, acts until both agree, and moves a shard by
// talking directly to its next home: no command can be lost. A message is sent only under an
// announced tenure, names its token, and is accepted under no other. So order, at-most-once
// delivery and "never two" do not depend on a correct coordinator or a correct membership. A
// Slot holds the entities of one shard during one tenure.
//
//	region          the part of one member in a type: it hosts shards and routes messages
//	home            the region to which a shard is assigned
//	tenure, token   a shard lease that is held, and its fencing token: these decide
//	epoch, version  the token of the coordinator's lease; (epoch, n): its n-th assignment
//	floor           the largest token under which no message is accepted any more
//
// docs/pictures/shard-states.svg shows the states of a shard at one region (shard.go). The route to
// a shard (route.go), an entity in its slot (slot.go), and a planned move:
//
//	unknown ── Active(T), T > floor: what waits is sent ──▶ known: to its host or entities
//	   ▲  └ messages wait, bounded; Where asks the home             │
//	   └── Pause, Inactive or NotHere of T: floor = T; host not in view: the floor stays ──┘
//
//	          message         passivated, idle, over the limit, stopped by itself, StopAll
//	(none) ───────────▶ running ─────────────────────────────────────▶ ending
//	   ▲                   ▲ ▲ │ failed                                   │ terminated
//	   │     back-off over │ │ ▼                                          │
//	   │                backing off                                       │
//	   └─ nothing waits ───┘ └───────── messages wait: started again ◀────┤
//	   └──────────────────────────────────── nothing waits ◀──────────────┘
//
//	coordinator   Table ─▶ all                                 the home of shard 7 is C, not A
//	A (has it)    Pause(T) ─▶ B, C …                           nothing of A goes in any more
//	B, C          Flush(T, number of the last message) ─▶ A    what they send now waits at B, C
//	A             has all those messages ─▶ stop entities ─▶ release ─▶ Free(blank) ─▶ C
//	C             AskFree ─▶ A (repeated) … acquires on the blank record ─▶ Active(T+1) ─▶ all
//	B             sends what has waited
//
// # Leases and tables
//
//   - S1: Entities run only under a tenure that is held. Else A, which has not heard of the
//     assignment to B, runs the shard too.
//   - S2, S2b: Each message, the stop message included, is checked against the tenure before it is
//     handled. On a loss, entities are stopped after their present message, before validity ends.
//   - S3, S4: The lease is released when every entity has terminated; the shard is announced as
//     free when the release is certain. Else the next home starts while stop messages are queued,
//     or waits a retry interval.
//   - S4b, S4c: A region that waits for a lease withdraws if the shard is not assigned to it any
//     more. A region without a tenure says so when asked. Else a lease blocks a hand-over for
//     minutes.
//   - S5: A grant that is not wanted any more is released.
//   - S6, S6b: Assignments are versions; the largest counts, not the latest message, and they are
//     repeated until heard. A table message carries the sum of the table; a region with another
//     sum gets what it lacks and reports all it knows. Else one lost message routes to the old
//     home for good.
//   - S6c: An assignment of an earlier epoch that reaches the coordinator late is sent again to
//     regions that had agreed before.
//   - S7, S7b: A coordinator decides when all members of its view have reported, or after Settle,
//     and keeps every home that is fit. A home in view that has not reported yet keeps its shards
//     for Fit. Else three lost messages move the shards of a healthy member.
//   - S8: A member is fit if it is in view, is not leaving, its stores answer (unless nobody's
//     do), and it has named this epoch within Fit. Else a region that cannot hear the table
//     stays a home.
//   - S8d: A home whose store does not answer keeps its shards until members have differed in that
//     for Fit. Else an outage moves the shards to the member that notices its end first.
//   - S8b: A report that a later one has overtaken does not count, except for its assignments:
//     tables are numbered, and reports name the largest number heard. Else a delayed report takes
//     a shard from a healthy home.
//   - S8c: A report names a sum over its active shards and tokens, and lists them only if the
//     table named another sum. A sum stands for the list that came with it only. (4,096 shards at
//     rest: 0.2 instead of 114 kB/s.)
//   - S9, S9b: A region that has not heard the coordinator for Orphan reads the holder of its
//     lease. If another session is seen to renew it, the region drains and releases; else it keeps
//     its shards. For cuts in one direction, or of one link of three; which side of a partition
//     hosts is decided in package node. Without node.Run, or with HostWithoutMajority, S9 is all
//     there is.
//   - S9c: A region that leaves does not ask: after Orphan it drains and releases, and takes no
//     shard again. Else it stops its entities in the middle when its time is over.
//   - S19, S19b: An assignment names every region that may still have the shard; the new home
//     needs a message of each, for this assignment, or its absence from the view. A move by choice
//     waits until the home has reported the shard active.
//   - S20: A region that is silent for Patience is not waited for: the lease decides.
//   - S26: Homes are chosen by equal numbers, or by rendezvous hashing over addresses. A hash of
//     the type and the address decides who gets the odd shards. Else, with 30 types of 4 shards,
//     the oldest of three members has 60 shards and the others 30 each.
//   - S27, S27b: No shard moves by choice while a member is not fit, for Stable after a change of
//     the view, or while Moves shards are moving. While versions of the application differ, shards
//     move only to homes that users have named, and those of a member that leaves go to the newest
//     version. Else each restart of a rolling update moves shards to members that stop next.
//   - S29, S29b, S29c: Members that leave while no other may host give up their shards without a
//     next home, and take none again. A region that has ended says Farewell (a Report of epoch 0),
//     and is neither given shards nor waited for. Else the last members wait for each other until
//     their deadline.
//   - S30: A lost lease does not change the home, unless it reports that its store does not answer
//     and another's does.
//   - S35, S35b: An override for a home counts while the named member is fit, and its shard is not
//     moved for balance.
//   - S36, S36b: A shard without a home waits for the answer of a user's function, not for long;
//     an answer counts only for its question.
//
// # Messages
//
//   - S10, S10b: Messages go only to an announced tenure; until then they wait at their senders.
//     After Pause, Inactive or NotHere of T, nothing is sent under T or lower. Only a message of
//     the host raises the floor. Else a late Active reopens a tenure that drains.
//   - S11: A host stops its entities when every region of its view has flushed, or after
//     FlushTimeout.
//   - S11b to S11f: Flush names the number of the last message, and the host waits for it. A
//     region that holds back does so in goroutines of senders too. The host accepts nothing after
//     that message, and waits for deliveries on their way.
//   - S11g: A region ends when all members have confirmed its messages, or after FlushTimeout.
//     Else a message of the last moment is lost with the connection.
//   - S11h: A host gives up a tenth of the moving shards at a time, at least four; the next when
//     one is active elsewhere, or after 50 ms. A region that must not host gives up all at once.
//     Else every message waits for the store's calls about all shards.
//   - S12, S12b, S12c: Data is accepted under exactly its token, else dropped, counted and
//     answered. Numbers of one region under one tenure rise, and messages are sent in that order.
//   - S13, S13b: A message that meets no tenure is answered NotHere. Calls to a host that is gone
//     end when it leaves the view, unless its region ended in order, or when another tenure begins
//     that it did not pause for.
//   - S17: Buffers are bounded by messages and bytes, per region; one shard may use an eighth. The
//     newest are refused: refusing the oldest would break the order.
//   - S38, S38b, S38c, S38d: A sender keeps a delivery until it is confirmed, and sends it under
//     each new tenure, and again at growing intervals. It is confirmed when its handler has
//     returned without a panic and the tenure was held after that. A host drops copies, and
//     confirms them again. Deliveries are bounded.
//   - S39, S39b: A region sends at most 2 MiB that the other has not taken; further messages wait.
//     What was taken is asked again, by the total sent.
//
// # Entities
//
//   - S14, S14b, S14c: After a stop request messages wait for the next incarnation, which starts
//     when the last has terminated. An entity that has not ended HandOff after the request is
//     stopped after its current message.
//   - S15, S15b: A hand-off drains waiting messages: an entity that is ending or backing off with
//     messages is started once more under the old tenure.
//   - S16, S16b, S16c: An entity that is to be remembered handles nothing before a majority knows
//     it. A new home reads a majority, adds what it finds again, and starts it. Else a late
//     removal by an earlier home makes it forgotten.
//   - S16d to S16g: A remembered entity that ends is started again until it asks to be forgotten.
//     With a rate, shards take turns. A store rejects calls that are older than another one for
//     the shard. A read takes the entities out of sets of other numbers of shards.
//   - S22, S22b, S22c: An entity that stops by itself or fails leaves its mailbox to the next
//     incarnation, before later messages. One that ends without having handled a message has
//     failed; after 8 such failures waiting messages are refused.
//   - S23: After HandOff entities are stopped after their present message; unhandled messages are returned to their senders.
//   - S34 to S34c: Above a limit, divided evenly among shards, the entity whose last
//     message is the oldest is passivated.
//   - S37, S37b: A worker is started again after every end, unless its shard moves, and is not
//     forgotten.
//   - S41: A region whose calls of the store of remembered entities have failed for Fit, without a
//     success and for a second shard too, reports so (breaker.go); then S8 and S8d apply. Its shards
//     move to members where a call has succeeded recently; if there are none, each other member
//     gets one, later. Messages that wait for the store are rejected. A region is tried with one
//     shard, at growing intervals. Else shards at a member that alone does not reach the store are
//     dead as long as that lasts, or an outage for all, or one damaged shard, moves shards without
//     end.
//   - S40: An entity runs in its own shard: a host ignores messages and ids that belong to
//     another.
//
// # Tests
//
// The simulation plays histories of three to five members with crashes, pauses longer than the
// TTL, partitions, cuts in one direction, outages and lost calls of the store, and messages that
// are lost, doubled and late. After every step it asserts: no two live incarnations, none without
// the lease, no message twice or out of its sender's order, tokens that never fall, bounded
// buffers, no shard taken from a healthy home; and that all is settled within 25 s after the
// faults. For two members and one shard all 56,000 histories with at most two deviations are
// played (-deviations). lab/shardtest does the like with real processes.
package core
