// Package causal is the causal core shared by all replicated values: dots, version vectors, stores
// of atoms, and a single join.
//
// A change made by a replica is an event and has a [Dot], the replica and the number of the event
// in that replica's sequence. An atom is one live fact: a path inside a value, the dot of the event
// that made it, and a payload. It is identified by path and dot together, never by the dot alone,
// since the atoms of one event share its dot. A [Store] holds the live atoms of one value. A
// [Vector] holds the events that a replica has seen. For an atom and a vector,
//
//	absent and covered      means removed,
//	absent and not covered  means not seen yet,
//
// so removed atoms need no tombstones. The same rule with one [Join] serves sets, flags, registers,
// counters and maps, because each of them is represented as atoms (see path.go). The vector of a
// replicator is the context of all its stores; a value used alone has its own.
//
// At one path a replica has at most one live atom, because its next write there observes and
// removes the previous one.
//
// Literature: Almeida, Shoker, Baquero, "Delta State Replicated Data Types" (2018); Bieniusa et
// al., "An Optimized Conflict-free Replicated Set" (2012); Gonçalves et al., "DottedDB" (2017).
package causal
