// Package arbiter decides which side of a partition hosts guarded work: one lease per cluster, and a protocol of
// one message. It is a state machine; package node connects it with the lease, the members and the gate.
//
// The oldest member of a view leads. While the view is whole, which means that it has as many members as the
// leader remembers, no lease is needed and the gate is open. When members are missing, the leader tries to
// acquire the lease: at once if it sees a majority of those it remembers, later the fewer it sees. The result is
// one of three:
//
//	held      this side hosts; the gate is open
//	taken     another side hosts; the gate is shut
//	unknown   the store is silent; the gate is shut, and nobody is declared down
//
// The leader tells the others of its view what it knows, and again every Beat. A member that does not hear of a
// held lease for Lapse shuts its gate. When the view has been whole for Settle, the lease is released.
//
//	        members missing for Hold           held
//	Whole ───────────────────────────▶ contest ─────▶ Ours
//	  ▲                                 │  ▲ taken, unknown: again after Retry
//	  └───────── whole for Settle ──────┴──┴──── lost: contest
//
// A member that leaves in order says so and is not missed. A member that starts remembers nobody: it follows the
// leader that it sees, and if it is the oldest itself it holds the lease once before it opens its gate. So a
// process that starts alone, inside a partition, does not take itself for the whole cluster.
//
// # What is guaranteed, and what is not
//
// Nothing rests on it that must not happen twice: each singleton and each shard has a lease of its own. The
// arbiter decides where guarded work runs, and which side gives way.
//
// Two sides of a partition do not both have an open gate once each view has been that of its side for
// Config.Decided, unless one of them takes itself for whole. That happens only to a side that has at least
// Config.Members members, and only if the others have left in order, or all have started inside the partition:
// nobody on it can know of the members that come up on another side. Until the time given, and while views
// differ within a side, both may be open.
//
// While the store answers, one side has an open gate at the latest one TTL of the lease, Hold, Delay and Retry
// after its view has become stable. After a partition has healed and views are whole, every gate is open within
// Config.Healed.
package arbiter
