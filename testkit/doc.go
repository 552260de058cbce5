// Package testkit tests actors: with probes, in isolation, and in virtual clusters on virtual time whose
// network, members and lease store misbehave as told. It is for everybody who builds on Concord or
// Proto.Actor, and Concord is tested with it.
//
// # One actor
//
// A Probe is an actor that keeps what it receives, for the test to take:
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
// An expectation that is not met fails the test and lists everything the probe has seen, in order, with
// the senders. Within bounds a part of a test by time, Fish picks messages out of many, Watch and
// ExpectTerminated follow the end of an actor, and Autopilot lets a probe stand in for another actor.
// ExpectLog and ExpectDeadLetter watch what leaves no message. RoundTrip checks that a message survives
// the wire. Isolate runs one actor alone and notes what it does to others; Tenure is a lease for
// actors that work only under one.
//
// All of it works in real time, and on virtual time inside Bubble (or testing/synctest, which Bubble
// completes), where time-outs cost nothing.
//
// # Many members
//
// Run makes a cluster of production actor systems, inside a bubble. Each makes components at all members,
// also those that come later:
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
// Members Crash, Leave, Restart, Join, Freeze, Suspend and Thaw, are expelled, and may be told of different
// members than others are. Each has a Clock, which may be wrong, and a Disk, which survives a crash as
// far as it was synced. A Link loses, delays, duplicates and reorders, or does so to one message; a Store is
// the way of one member to the lease store, and fails as told. Settle waits until nothing moves, Advance
// lets time pass, Eventually waits for a condition.
//
// # Splits
//
// By default a member lists whom the cluster tells it, and one that was expelled stays away. Two options make
// members behave as in production: with Provider each one looks for the others by itself, drops who is out of
// reach, and never lists that id again; with Rejoin a process whose member was expelled, or gave way after a
// split, begins another life at the same address.
//
//	testkit.Run(t, 3, func(t *testing.T, c *testkit.Cluster) {
//		c.Partition([]int{0, 1}, []int{2})
//		c.Advance(6 * time.Second) // 0 and 1 drop 2, which drops them
//		c.Heal()
//		testkit.Eventually(t, 8*time.Second, c.Whole) // 2 has come back, with another id
//	}, testkit.Provider(500*time.Millisecond, 2*time.Second), testkit.Rejoin(time.Second))
//
// Each life is a Member of its own: ask c.Member(i) and PerMember.At(i) for the present one. A component that keeps
// its handle over lives, such as a Replicator or a Singleton, is the same at each. Between two lives a member is
// in neither Members nor anybody's view for long, and its calls wait or fail as under node.Run.
//
// # What is real and what is not
//
// Actors, mailboxes, PIDs, components, encoding and the order of messages between two members are those
// of production. The network has no connections: nothing is lost or reordered unless told to be. Watch and
// Stop do not reach other members; a test that sends one, or a message that is no protobuf message, to
// another member has made a mistake, and Run says so for messages. Membership is told by the cluster,
// unless the option Provider lets members find out by themselves.
//
// A frozen member's goroutines run on, see Member.Freeze. A crashed member's actors handle Stopping. Sessions,
// membership and all timers of Concord's components go by the clock of their member; contexts, and what
// components read from package time, by that of the bubble. Goroutines and tickers that a component starts must end when
// its member is stopped, or the bubble reports a deadlock; Each does not end them by itself.
//
// # Seeds
//
// All chance of the network comes from one seed, and messages arrive at distinct moments, so runs with one
// seed are alike as far as the tested code is: goroutines that are ready at the same moment still run in
// any order. A failing test prints its seed; the environment variable TESTKIT_SEED sets it.
package testkit
