// Package core is the lease protocol without a clock, a store or a goroutine: a deterministic state
// machine that turns a reading of the clocks and an event into effects.
//
// One Machine stands for one lease name in one session. The shell owns the rest: it calls the store
// for Load and Swap, hands the answers back as Loaded and Swapped, and sends a Tick at Wake.
//
//	      Acquire              claim               written or found
//	Idle ─────────▶ Reading ─────────▶ Claiming ───────────────────▶ Held
//	  ▲               ▲ │ held by        │ unknown, conflict          │ Release     │ stop-by passed,
//	  │           due │ ▼ another        ▼                            ▼             ▼ or Close
//	  │             Waiting          Doubtful ─── nobody waits ─▶ Releasing ◀─── Draining
//	  └───────────────────────────────────────────────────────────────┘ certain or expired
//
// # What safety rests on
//
//   - A holder counts validity from the reading taken before it sent the write that is found in the
//     record, never from the answer; it subtracts the clock rate error and a margin.
//   - A contender counts from the moment it saw a version for the first time, on its own monotonic
//     clock, with the TTL the record names, and its write is conditional on that version.
//   - A write of unknown outcome is never forgotten: it is found in the record, or made impossible by a
//     later write on the same version, or its TTL has passed.
//
// So a holder's last moment lies before a contender's first write for any difference of wall clocks,
// if the rates of both clocks are right within Config.RateError.
//
// # Leases held through a session record
//
// With Config.Shared a lease's record is written once, when it is claimed, and once more to release it. It
// names its holder's nonce, and the token of the tenure in which the holder held its session record then. The
// session record is a lease of its own, of a name made of the nonce, held by a machine of its own
// (Config.Keeper) by the rules above; its renewals are the only ones. A lease is valid exactly as long as
// that tenure of the session.
//
// A contender takes such a lease only with a write conditional on the lease's record, after a read of the
// session record that shows that tenure of the session to be over. It is over if
//
//   - the record has a larger token: the machine of the session begins a tenure only after the one before
//     has ended and its work has no time left; or
//   - it is blank with that token: the session was given up, which is done when nothing is held through it
//     any more, or was found to be over before (Bury); or
//   - it was read for the first time as it is, and a read that began TTL·(1+ρ)+margin or more after that,
//     by the TTL it names, finds it unchanged.
//
// The last is safe although the lease is taken with a write that the session record has no part in. Let the
// contender see version s first at t. The holder's write of s was sent before t. It believes a later write
// only if the answer, or a read that finds it, has come back before its stop-by, which is before the second
// read began, by the argument for leases above. Then the write was in the store by then and the second read
// would have found it. So the holder has stopped, and for good: an end is final, and what lands later is
// believed by nobody. Hence it does not matter how much later the contender's own write lands.
//
// A session record that is absent, or has a smaller token, frees nothing at once: somebody has deleted it
// or put it back, and its holder may not know yet. It must stay so for the TTL in the lease's record. The holder finds
// out with its next renewal, and loses all its leases.
//
// A claim names the tenure of the session that it lives by, and is given up when that has ended: one that lands
// later names a tenure that is over. One that is not wanted any more is undone until that is certain, since a
// living session would keep it alive for ever. What lies in a record of another nonce, or of the own one
// without a tenure here, is never believed.
//
// # One observation for all leases
//
// What is known of a session's record belongs to the contender's session (Peers), and not to a lease: since
// when it is as it is, and up to which tenure it is over. An Observer keeps that fresh while a lease held
// through the session is waited for or followed, or when the session was told to (Session.Observe). It adds
// nothing to the rules: a verdict still needs a read that began after the wait and finds the same version,
// and it is final, whichever lease has led to it. Reads of one record by several machines may overtake each
// other; then the record looks younger than it is.
//
// # Waiting in order
//
// With Config.Fair, Waiting goes through a queue in the store; queue.go tells how. No rule above depends on it.
//
// # Programs that know no sessions
//
// Records without a session (from programs that know none, or sessions that do not share) are judged by
// themselves, as above. A program that knows no sessions must not understand records that name one: it
// would take them for dead. So stores write those in a later format.
package core
