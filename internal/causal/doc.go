// Package causal is the one causal core under every replicated value: dots, version vectors, stores
// of atoms and the one join.
//
// A change made by a replica is an event and has a [Dot], the replica and the number of the event in
// that replica's sequence. An atom is one live fact: a path inside a value, the dot of the event that
// made it, and a payload. Its identity is path and dot together, never the dot alone, since the atoms
// of one event share its dot. A [Store] holds the live atoms of one value. What a replica has seen is
// a [Vector]: it covers an event or it does not, and
//
//	absent and covered      means removed,
//	absent and not covered  means not seen yet,
//
// so nothing has to be remembered about what was removed: no tombstones. The same rule with one
// [Join] serves sets, flags, registers, counters and maps, because each of them is described as atoms
// (see path.go). The vector of a whole replicator is the context of each of its stores; a value used
// alone carries its own.
//
// At one path a replica has at most one live atom, because its own next write there observes, and
// removes, the one before.
//
// Literature: Almeida, Shoker, Baquero, "Delta State Replicated Data Types" (2018); Bieniusa et al.,
// "An Optimized Conflict-free Replicated Set" (2012); Gonçalves et al., "DottedDB" (2017).
package causal
