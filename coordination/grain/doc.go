// Package grain makes Proto.Actor's virtual actors safe: each grain works only under a lease that
// is named after the grain's identity.
//
//	session, err := coordination.Open(store, coordination.Config{})
//	…
//	accounts, err := grain.NewKind("account", session, grain.Config{}, func(id *cluster.ClusterIdentity, t coordination.Tenure) actor.Actor {
//		return &account{id: id.Identity, tenure: t}
//	})
//	c := cluster.New(system, node.Cluster("bank", provider, rc, cluster.WithKinds(accounts)))
//
// Proto.Actor finds a grain by hashing its identity over the members that it sees. When members
// come and go, and in a partition, two members may each activate the same grain, and both answer.
// With this package both activations exist, but only the one that holds the lease has a worker,
// which handles messages under a Tenure whose token a store can check. The other activation keeps
// its messages, up to Config.Buffer, until it gets the lease; further messages go to the dead
// letters.
//
// # What is guaranteed
//
// At most one worker of a grain runs at any time, under the conditions of package coordination:
// clocks run at the promised rates, and each Receive returns within the session's Drain. In a
// partition, the side that reaches the store, and reached it first, has the worker. After a crash
// of its member the grain works elsewhere when the lease has expired: its TTL after another
// activation first read it.
//
// A worker that stops itself, for example when it is idle, ends its activation and releases the
// lease; the next message activates the grain again. Messages in its mailbox are then lost, as with
// any virtual actor, and so are those of a worker whose lease was lost. A grain costs one lease:
// two writes to the store for an activation, and no renewals of its own if the store is a
// SessionKeeper.
//
// Program examples/grain shows two activations of one grain, and docs/leases.md is the guide to
// leases.
package grain
