// Package core is the sharding protocol without a clock, a network, a lease or an actor:
// deterministic state machines that turn events into effects. docs/sharding.md has the rules;
// simulation, exhaustive exploration and planted bugs (internal/mutants) test the code against
// them.
//
// The lease of each shard says which region may run it; a table says which one should. An
// Allocation, at the coordinator, writes the table. A Region, on each member, brings its shards in
// line with the table, and moves a shard by talking directly to its next home: the coordinator
// sends no commands that could be lost. A Slot holds the entities of one shard during one tenure.
package core
