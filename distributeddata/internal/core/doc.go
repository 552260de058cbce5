// Package core implements the replication protocol as a pure state machine: Step takes the time and
// an event and returns effects. It has no clock, I/O, goroutines or randomness, so a seeded
// schedule of events determines one history. The simulation in this package's tests checks
// thousands of histories against a specification. The rules (R1 …) are those of
// docs/replication.md.
//
// Every change that a replica makes takes the next number of one sequence. One version vector
// records what a replica has seen of all sequences. Changes are applied in causal order, so the
// vector is a causal cut and the causal context of every key: no record of removals is kept per
// key. The invariant, at every replica after every step, is
//
//	state = specification(vector).
//
// One kind of message carries changes: the [delta], a set of events that a replica which has seen
// its base applies in one step. The origin pushes its own events as a delta to every member. A
// replica that learns that it is behind sends a request to a member that is ahead. The answer is a
// delta computed from the requester's vector, or a snapshot if the log of the answering member does
// not reach back far enough.
package core
