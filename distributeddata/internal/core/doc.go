// Package core is the replication protocol as a pure state machine: Step takes the time and an event
// and returns effects. There is no clock, no I/O, no goroutine and no randomness in it, so a seeded
// schedule of events is one history, and the simulation in this package's tests runs thousands of
// them against a specification. The rules (R1 …) are those of docs/replication.md.
//
// Every change a replica makes takes the next number of one sequence, and one version vector says what
// a replica has seen of all of them. Changes are applied in causal order, so the vector is a causal
// cut and the causal context of every key: nothing is kept per key to know what was removed. The
// invariant, at every replica after every step, is
//
//	state = specification(vector).
//
// One message carries changes, the [delta]: events that whoever has seen its base applies in one
// step. The origin pushes its own events as a delta to everybody; a replica that sees itself behind
// asks anybody who is ahead, and is answered with a delta computed from its own vector, or with a
// snapshot where the answerer's log does not reach back far enough.
package core
