// Package arbiter decides which side of a partition hosts guarded work: the side with a majority of
// the members. It is a state machine; package node connects it with the lease store, the members
// and the gate.
//
// A member remembers how many members there are: the most that it has seen at once, without those
// that left in order. A side with more than half of them has a majority. Its gates are open, and do
// not depend on the store. Its leader, the oldest member, holds the lease Majority, so that members
// on other sides, and members that have just started, can see that there is a majority.
//
// A side without a majority is decided by its leader. The leader releases Majority and probes it:
//
//	                  no majority              the store answers
//	majority: open ───────────────▶ Pending: open ─────────────▶ Undecided: shut
//	     ▲                             │ no answer for TTL              │ nobody holds Majority, and
//	     │                             └────────────────▶ shut          │ it is this side's turn: Rest
//	     │                                                              ▼
//	     └──── members are back ◀──── Elsewhere: shut ◀─────────── Ours: open
//	                                                  a majority is back
//
// Of several sides without a majority, one gets the lease Rest: an exact half tries at once and
// goes on until the store has decided, smaller sides try later, the larger first. After an outage
// of the store they leave a majority a TTL to acquire its lease; so does a leader that cannot know
// whether there was an outage, since it has just begun, or has followed another one on that side.
// Without the store nothing can be released, so what is held goes on until its leases end.
//
// The leader sends its verdict, and the number of members, to the other members of its view. They
// follow it where their own view has no majority. The verdict lapses when the leader is silent.
//
// A member that has just started does not know how many members there are until its leader says so.
// A leader that does not know either takes Config.Members for a majority, and acquires Majority
// first: if nobody holds it, this is the beginning of the cluster. Until it has seen as many, it
// gives up Rest at once, unless it is a later incarnation, whose others may be gone for good.
// Where one member is enough to begin, it acquires Rest before Majority, since a side without a
// majority may host. Members that are assumed to exist are counted until the view has not changed
// for a moment. If the leader does not know for a TTL, as it does not reach the store, members that
// do acquire Majority in its place, and tell it the number: see Core.founds.
//
// A majority that has had the lease and the same view for a minute no longer counts the members
// that are missing. Another side may then have more members, and also count itself as a majority.
// So may two sides that are cut while new members are not listed by all yet. The one that does not
// hold Majority finds it held by a member that lives, that is for longer than a crashed member
// could hold it, and yields. So does a member that counts a majority, and whose leader, which does
// not, has found another side for as long: members that were not counted may be among those it
// sees. A leader may also find a lease held by a member that will soon see it, and follow it: so
// members that have just begun to follow a leader that yields wait for the hand-over of the lease.
//
// Members are counted, not identified, although two sides then can both count a majority for up to
// 1.25 TTL and two calls of the store after a cut (lives; CutOnce plays it). The alternative: a
// member counts once the holder of Majority has made it known, the set changes by one agreed step
// at a time, as in Raft, and a side needs a majority of that set. Two sides then never have one. It
// costs availability where ids are new, as they are in each incarnation. If most members are killed
// and started again, or rejoin after a cut, the survivors have no majority of the set, and wait for
// Rest, where they host at once by their number; if members are added or replaced during a cut, the
// larger side may have no host until its end. A sketch of it, by ids, left members of a side with
// more than half of all without an open gate in 62 of 300 histories of OneSideHosts, and gates shut
// after the end of the cut in 107 others. The leases of singletons and shards prevent a second
// instance meanwhile.
//
// A verdict also names the session through which the leader holds Majority. A member looks once in
// its own store for that session. If the lease is not there, both name different stores, and each
// could host what the other one hosts: the member does not host, and after two TTLs tells the
// others and gives up.
//
// # Guarantees
//
// The arbiter is not what prevents two instances: each singleton and each shard has its own lease.
//
// A side with a majority hosts as soon as its views show it, from every state, except when it
// yields, or when nobody there knows how many members there are and none of them reaches the store
// (where one member is enough to begin: the oldest does not). Once
// views, members and store have not changed for Config.Decided, one side hosts, the others do not,
// and no gate changes any more; if leases of crashed members are involved, it takes until these
// have ended, and if two sides count differently, at most twice as long. While the store does not
// answer a majority, another side may have an open gate too.
package arbiter
