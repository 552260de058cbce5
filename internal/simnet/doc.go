// Package simnet joins actor systems of one process by a network in memory, for tests in virtual time. It is
// what package testkit is built on, and what is below the components is tested with; whatever may import
// testkit uses that.
//
// Run a test inside a testing/synctest bubble: then latency, loss and an hour of partition cost no
// real time, and synctest.Wait means that every mailbox is drained and only timers are left.
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
// Like remoting it keeps the order of messages from one system to another (unless told not to),
// loses without a word what cannot be delivered, and delivers to whatever system listens on the
// address when the message arrives, be it another one than was meant. Unlike remoting it makes no
// dead letters of what it loses. Remote Watch and Stop are not carried; they are counted.
//
// One goroutine delivers the messages of all links. Close the network before the bubble ends.
//
// Cluster adds membership: fake topology events on each member's EventStream, from views that may be made
// to disagree.
//
// # Seeds
//
// Every direction between two addresses has its own pseudo-random numbers, from the seed and the
// addresses, and messages arrive at distinct moments. So runs with one seed are alike as far as the
// tested code is: goroutines that are ready at the same moment still run in any order.
package simnet
