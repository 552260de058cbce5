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
package core
