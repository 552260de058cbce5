// Package arbiter decides which side of a partition hosts guarded work, with one lease per cluster
// and a protocol of one message. It is a state machine; package node connects it with the lease,
// the members and the gate.
//
// The oldest member of a view leads. While the view is whole, that is, while it has as many members
// as the leader remembers, no lease is needed and the gate is open. When members are missing, the
// leader tries to acquire the lease: at once if it sees a majority of the members it remembers,
// later the fewer it sees. An attempt has one of three results:
//
//	held      this side hosts; the gate is open
//	taken     another side hosts; the gate is shut
//	unknown   the store does not answer; the gate is shut, and no side is declared down
//
// The leader sends its verdict to the other members of its view, and repeats it every Beat. A
// member that has not heard for Lapse that the lease is held shuts its gate. When the view has been
// whole for Settle, the lease is released.
//
//	        members missing for Hold           held
//	Whole ───────────────────────────▶ contest ─────▶ Ours
//	  ▲                                 │  ▲ taken, unknown: again after Retry
//	  └───────── whole for Settle ──────┴──┴──── lost: contest
//
// A member that leaves in order announces it and is not missed. A member that starts remembers no
// other members: it follows the leader that it sees. If it is the oldest itself, it acquires the
// lease once before it opens its gate. A process that starts alone inside a partition therefore
// does not mistake itself for the whole cluster.
//
// # Guarantees
//
// The arbiter is not what prevents two instances: each singleton and each shard has its own lease.
// The arbiter decides where guarded work runs, and which side gives way.
//
// Once the view of each side of a partition has been stable for Config.Decided, the two sides do
// not both have an open gate, unless one of them considers itself whole. Only a side with at least
// Config.Members members can do so, and only if the others have left in order or all members have
// started inside the partition: a side cannot know of members that come up on another side. Before
// that time, and while views within a side differ, both gates may be open.
//
// While the store answers, one side has an open gate within one TTL of the lease plus Hold, Delay
// and Retry after its view has become stable. After a partition has healed and views are whole,
// every gate is open within Config.Healed.
package arbiter
