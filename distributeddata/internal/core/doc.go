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
//
// # To change the replicator
//
// Packages beside this one each answer for one thing and know no message:
//
//	history   what this replica knows: state, vector, log, open events
//	quorum    the members that quorums are counted over, and their record in a store
//	outbox    when own events are pushed
//	transfer  an answer in parts, on both sides
//	waiting   calls that wait for other members, and their deadlines
//	bases     vectors told as differences from a named base
//	barrier   outputs that wait for the disk
//
// The parts of this package speak for them with other members. Each is handed what it needs, and
// adds to the effects of the step; none knows Core, which only decides what comes after what:
//
//	step      the time of a step and what it has done so far
//	herald    what this replica says of itself: heartbeats, acknowledgements, requests
//	cluster   who counts in quorums: a herald that also hears the other members
//	calls     the calls that wait for members: a cluster with their tasks
//	pushes    the own events that are sent; inbox: the pushes that arrive
//	intake    the answer that arrives; outlet: those that are sent
//	vectors   the bases of vectors in messages
//	disk      what the disk is to hold, and what it has
//
// An update passes update.go (history.Update, then end), push.go, codec.go, and at the other member
// receive.go, decode.go, window.go (history.ApplyPush) and acknowledge; the acknowledgement passes
// confirm.go and ends the call in ops.go.
//
// A new message has a manifest in internal/wire, a schema in proto, a case of dispatch in
// receive.go, and a handler that decodes it completely before it changes anything. What follows
// from any event or from the time belongs into settle, in core.go. A step that needs a wake-up adds
// it to NextWake.
//
// TestHistories judges by what clients see, and knows no part. TestGolden has one protocol a file,
// in testdata. docs/replication.md names the tests of each rule, and lab/mutants plants bugs
// that named tests must find.
package core
