// Package stash holds messages back until an actor is ready for them.
//
// Proto.Actor's own stash loses the sender, and replays in reverse and only when the actor
// restarts. This one is a bounded first-in-first-out queue of message, sender and header. It keeps
// no actor context, so its entries stay valid.
package stash
