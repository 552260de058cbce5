// Package ask sends a message to an actor and waits for the answer.
//
// It replaces Proto.Actor's Future, which writes a late or second answer without its lock and wakes
// only one of several waiters. Here the answer goes to a temporary process that is registered
// exactly for the duration of the call: the first answer wins, a second one is dropped, and one
// that arrives after the call becomes a dead letter at the answering side.
package ask
