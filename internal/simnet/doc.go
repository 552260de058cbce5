// Package simnet connects actor systems of one process by an in-memory network, for tests in
// virtual time. Package testkit is built on it, and is what users import. Tests of Concord's own
// packages and package examples/three use simnet directly.
//
// Run a test inside a testing/synctest bubble. Latency, loss and an hour of partition then cost no
// real time, and synctest.Wait returns when every mailbox is empty and only timers are left.
//
//	simnet.Run(t, simnet.Config{Members: 3, Seed: 1}, func(t *testing.T, c *simnet.Cluster) {
//		c.Net.Cut(c.Member(0).Address, c.Member(1).Address)
//		time.Sleep(time.Hour)
//		c.Net.Heal()
//	})
//
// Net uses only exported hooks of Proto.Actor: the address of the process registry and an address
// resolver. Every message is marshalled when it is sent and unmarshalled when it arrives, so
// nothing is shared between members, and PIDs are the same as over real remoting.
//
// Like remoting, it keeps messages from one system to another in order (unless configured
// otherwise), silently loses undeliverable messages, and delivers to the system that listens on the
// address when the message arrives, even if it is not the intended one. Unlike remoting, it does
// not turn lost messages into dead letters. Remote Watch and Stop are counted but not carried.
//
// One goroutine delivers the messages of all links. Close the network before the bubble ends.
//
// Cluster adds membership: fake topology events on each member's EventStream. The views of members
// can be made to differ.
//
// # Seeds
//
// Every direction between two addresses has its own pseudo-random numbers, derived from the seed
// and the addresses, and messages arrive at distinct times. So runs with one seed are identical as
// far as the tested code is deterministic: goroutines that are ready at the same time still run in
// any order.
package simnet
