// Package lane decides about the messages of a shard that do not take a step of its region: in the
// goroutine of their sender, or in that which reads the connection they came by. The region says
// by effects what may pass, and learns by events what has passed.
//
// The types have no lock, clock or goroutine. They read nothing but the effects of the region and
// the messages themselves; the caller holds the lock under which it passes a message on, so that
// messages are passed on in the order of their numbers.
package lane
