// Package ask sends a message to an actor and waits for the answer.
//
// It replaces Proto.Actor's Future, which writes a late or second answer without its lock and
// wakes only one of several waiters. Here the answer goes to a one-shot process that lives in the
// process registry exactly as long as the call: the first answer wins, a second one is dropped, and
// one that comes after the call has ended is a dead letter of the answering side.
package ask
