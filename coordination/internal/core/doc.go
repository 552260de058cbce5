// Package core implements the lease protocol without a clock, a store or a goroutine: as a
// deterministic state machine that turns a reading of the clocks and an event into effects.
//
// One Machine handles one lease name in one session. The shell does the rest: it calls the store
// for Load and Swap, passes the answers back as Loaded and Swapped, and sends a Tick at Wake.
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
//   - A holder counts validity from the reading taken before it sent the write that the record
//     contains, never from the answer. It subtracts the clock rate error and a margin.
//   - A contender counts from the moment it first saw a version, on its own monotonic clock, with
//     the TTL that the record names. Its write is conditional on that version.
//   - A write of unknown outcome is never forgotten: it is found in the record, or made impossible
//     by a later write on the same version, or its TTL has passed.
//
// So the last moment of a holder comes before the first write of a contender, for any difference of
// wall clocks, if the rates of both clocks are right within Config.RateError.
//
// # Leases held through a session record
//
// With Config.Shared the record of a lease is written once, when the lease is claimed, and once
// more to release it. The record contains the holder's nonce, and the token of the tenure in which
// the holder held its session record at that time. The session record is itself a lease, whose name
// is made from the nonce. A machine of its own (Config.Keeper) holds it by the rules above; its
// renewals are the only ones. A lease is valid exactly as long as that tenure of the session
// record.
//
// A contender takes such a lease only with a write that is conditional on the lease's record, when
// it knows that this tenure of the session is over. The tenure is over if
//
//   - the session record has a larger token: the machine of the session begins a tenure only after
//     the tenure before has ended and its work has no time left; or
//   - the session record is blank, with that token or a larger one, in a read that began after the
//     lease's record was read: the session was given up, which is done when nothing is held through
//     it any more, or another session has ended it. The token of a blank record says nothing about
//     later tenures, because the store may show any larger one; or
//   - the contender has ended it (EndSession): its present version was first read at some time, and
//     a write that blanks it, sent TTL·(1+ρ)+margin or more after that time, by the TTL in the
//     record, and conditional on that version, was made.
//
// The last rule is the one for leases, applied to the session record: the holder has stopped, and
// its next renewal is a conflict. The end is final, so it does not matter how much later the write
// lands that takes the lease. A read that finds the version unchanged would not do: a server that
// lags behind may answer it. No read has to be up to date, but what a session reads must never go
// back in time: else it might find the session record as it was before the lease was claimed.
//
// An absent session record, or one with a smaller token, does not free the lease at once: someone
// has deleted it or restored an older one, and its holder may not know yet. It must stay so for the
// TTL in the lease's record, counted from the first read that found it so and began after the
// lease's record was read. The holder notices at its next renewal, and loses all its leases. So it
// does if its record is an older one of the same tenure: then the store was restored, and records
// of leases that it does not hold may name the session. Its next tenure frees these.
//
// A claim names the tenure of the session that it depends on, and is given up when that tenure has
// ended: if the claim lands later, it names a tenure that is over. A claim that is not wanted any
// more is undone until its removal is certain, since a living session would keep it alive forever.
// The contents of a record with another nonce, or with the machine's own nonce but without a tenure
// here, are never believed.
//
// # One observation for all leases
//
// What is known about a session's record belongs to the contender's session (Peers), not to one
// lease: since when the record has its present version, and up to which tenure the session is over.
// If a watch has reported the same write before, it counts from the report: a write is known by its
// attempt, and its holder has sent it before. An Observer keeps this knowledge fresh while a lease
// held through that session is waited for or followed, or after a call of Session.Observe. It adds
// nothing to the rules: a tenure that it has ended is over for all leases. Reads of one record by
// several machines may overtake each other; then the record looks younger than it is.
//
// # A thousand leases
//
// While the watch of a lease runs, a waiter does not poll. The observer of the holder's session
// reads for all leases held through it, and the end makes their machines ready: each claims on the
// version that it has seen, without another read. A watch can fall silent without an error, so
// one of the machines that rely on theirs reads its lease every Config.Retry. Calls that are not
// renewals wait for a slot, so that a thousand leases that are wanted or released at once do not
// time out while they wait for the store. All this is in Common. It decides when a machine acts,
// and none of the rules above depends on it.
//
// # Waiting in order
//
// With Config.Fair, machines wait in a queue in the store; queue.go describes it. No rule above
// depends on the queue.
//
// # Programs that know no sessions
//
// Records without a session, from programs that know no sessions or from sessions that do not
// share, are judged by themselves, as above. A program that knows no sessions must not be able to
// read records that name one, because it would consider them dead. So stores write those in a later
// format.
package core
