// Package lane decides about the messages of a shard that do not take a step of its region: in the
// goroutine of their sender, or in that which reads the connection they came by. The region says
// by effects what may pass, and learns by events what has passed.
//
// In and Out, one of each for a shard, have no lock, clock or goroutine. They read nothing but the
// effects of the region, the messages themselves, and what all shards of a member share: the Room
// for messages that wait, and the Flow to each host, which any goroutine may use. The caller holds
// the lock of the shard while it asks and while it passes a message on, so that messages are passed
// on in the order of their numbers. In whichever goroutine a message of this process leaves, it has
// one queue and one bound.
//
// Pace and Held are what the slots of a member share. The core asks them through interfaces, so
// that it has no lock of its own.
package lane
