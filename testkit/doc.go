// Package testkit tests actors with probes, in isolation, and in virtual clusters on virtual time
// with configurable faults of the network, the members and the lease store. It is for all users of
// Concord and Proto.Actor; Concord itself is tested with it.
//
// # One actor
//
// A Probe is an actor that records the messages it receives. The test takes them from the probe:
//
//	func TestCart_ConfirmsWhatItAdds(t *testing.T) {
//		system := testkit.NewSystem(t)
//		cart := system.Root.Spawn(shop.CartProps())
//		probe := testkit.NewProbe(t, system)
//
//		probe.Request(cart, &shop.Add{Item: "milk"})
//		added := testkit.Expect[*shop.Added](probe)
//		require.Equal(t, "milk", added.Item)
//		probe.ExpectNone(100 * time.Millisecond)
//	}
//
// An expectation that is not met fails the test and lists everything the probe has received, in
// order, with the senders. Panics of actors are listed too, with the line of code that caused them.
// Within limits the time of a part of a test, Fish picks messages out of many, Watch and
// ExpectTerminated observe the termination of an actor, and Autopilot lets a probe stand in for
// another actor. ExpectLog and ExpectDeadLetter check what produces no message. RoundTrip checks
// that a message survives encoding and decoding. Isolate runs one actor alone and records its
// effects on others. Tenure returns a lease for actors that work only under one.
//
// All of this works in real time, and in virtual time inside Bubble, which extends testing/synctest
// and makes time-outs cost nothing. If virtual time stands still, because an actor never rests, the
// test binary ends with a panic that names the actor.
//
// # Many members
//
// Run creates a cluster of production actor systems inside a bubble. Each creates components at all
// members, including those that join later:
//
//	func TestSet_HealsAfterAnHourOfPartition(t *testing.T) {
//		testkit.Run(t, 5, func(t *testing.T, c *testkit.Cluster) {
//			dd := testkit.Each(c, func(m *testkit.Member) (*distributeddata.Replicator, error) {
//				return distributeddata.New(m.System, distributeddata.Config{MinMembers: 5})
//			})
//			c.Partition([]int{0, 1}, []int{2, 3, 4})
//			add(t, dd.At(0), "milk")
//			add(t, dd.At(4), "bread")
//			c.Advance(time.Hour) // takes a fraction of a second
//			c.Heal()
//			testkit.Eventually(t, 5*time.Second, func() error {
//				return sameAtAll(c, dd, "bread", "milk")
//			})
//		})
//	}
//
// Members can Crash, Leave, Restart, Join, Freeze, Suspend and Thaw. They can be expelled, and
// their views can differ. Each has a Clock, which may be wrong, and a Disk, whose synced data
// survives a crash. A Link loses, delays, duplicates and reorders messages, all of them or a single
// one. A Store connects one member to the lease store, with configurable faults; it has all
// abilities of a production store unless LeaseStore takes some away. Ready waits until components
// count in quorums. Settle waits until the cluster is idle, Advance advances the time, and
// Eventually waits for a condition.
//
// # Splits
//
// By default a member lists the members that the cluster reports to it, and an expelled member
// stays away. Two options make members behave as in production. With Provider each member discovers
// the others by itself, drops unreachable members, and never lists a dropped id again. With Rejoin
// a process whose member was expelled, or stepped down after a split, begins another incarnation at
// the same address.
//
//	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
//		c.Partition([]int{0, 1}, []int{2})
//		c.Advance(6 * time.Second) // 0 and 1 drop 2, which drops them
//		c.Heal()
//		testkit.Eventually(t, 8*time.Second, c.Whole) // 2 has come back, with another id
//	}, testkit.Provider(500*time.Millisecond, 2*time.Second), testkit.Rejoin(time.Second))
//
// Each incarnation is a Member of its own: c.Member(i) and PerMember.At(i) return the current one.
// A component that keeps its handle across incarnations, such as a Replicator or a Singleton, is
// the same in each incarnation. While it rejoins, a member is not in Members and soon disappears
// from the views of the others, and its calls wait or fail as under node.Run.
//
// One rule of node.Run is missing: that only the side with a majority hosts. A member on another
// side keeps its singletons and shards while it reaches the lease store. Cut it off from the store
// too, with Member.Store.Set.
//
// # What is real and what is not
//
// Actors, mailboxes, PIDs, components, encoding and the order of messages between two members are
// those of production. The network has no connections: it loses and reorders messages only if
// configured to. Watch and Stop do not reach other members. A test must not send them, or a message
// that is not a protobuf message, to another member; Run reports such messages. The cluster reports
// membership to the members, unless the option Provider makes them discover it by themselves.
//
// The goroutines of a frozen member continue to run, see Member.Freeze. The actors of a crashed
// member handle Stopping. Sessions, membership and all timers of Concord's components use the clock
// of their member; contexts, and components that call package time, use the time of the bubble.
// Goroutines and tickers that a component starts must stop when its member is stopped, or the test
// fails and names them; Each does not stop them.
//
// # Seeds
//
// All randomness of the network comes from one seed, and messages arrive at distinct times, so runs
// with the same seed are identical as far as the tested code is deterministic: goroutines that are
// ready at the same time still run in any order. A failing test prints its seed; the environment
// variable TESTKIT_SEED sets it.
//
// docs/testing.md is the guide. Package examples/testing tests an actor.
package testkit
