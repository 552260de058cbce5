// Package core is the sharding protocol without a clock, a network, a lease or an actor: deterministic
// state machines that turn events into effects. docs/sharding.md has the rules; simulation, exhaustive
// exploration and planted bugs (internal/mutants) hold the code to them.
//
// A lease for each shard says which region may run it; a table says which one should. An Allocation, at
// the coordinator, writes the table. A Region, at each member, brings what it does in line with it, and
// moves a shard with its next home directly: nothing that a coordinator says is a command which could be
// lost. A Slot keeps the entities of one shard under one tenure.
package core
