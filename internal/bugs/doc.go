// Package bugs reports panics of this module's own code in actors: to the log, to a counter, and to
// the health of the member.
//
// A panic hits one of three places. A panic in a function of the application is contained where the
// function is called, as by package contain, and is not a bug of this module. After a panic while
// an effect of a core is carried out, package shell reports it and continues with the next effect.
// Any other panic in an actor, for instance in the step of a core, ends the handling of the
// message; Guardian reports it and restarts the actor.
package bugs
