// Package grain makes Proto.Actor's virtual actors safe: each grain works only under a lease named by its
// identity.
//
//	session, err := coordination.Open(store, coordination.Config{})
//	…
//	accounts, err := grain.NewKind("account", session, grain.Config{}, func(id *cluster.ClusterIdentity, t coordination.Tenure) actor.Actor {
//		return &account{id: id.Identity, tenure: t}
//	})
//	c := cluster.New(system, node.Cluster("bank", provider, rc, cluster.WithKinds(accounts)))
//
// Proto.Actor finds a grain by hashing its identity over the members that it sees. When members come and go,
// and in a partition, two members may each activate the same grain, and both answer. With this package both
// activations exist, but only the one that holds the lease has a worker: it handles messages, under a Tenure
// whose token a store can check. The other keeps its messages, up to Config.Buffer, until the lease is free;
// what does not fit goes to the dead letters.
//
// # What is guaranteed
//
// At most one worker of a grain lives at any time, as package coordination says of a lease: if clocks run at
// rates as promised, and each Receive returns within the session's Drain. In a partition the side that reaches
// the store, and got there first, has the worker. After a crash of its member the grain works elsewhere when
// the lease is stale, its TTL after another activation first looked.
//
// A worker that stops itself, for example when it is idle, ends its activation and releases the lease; the
// next message activates the grain again. Messages in its mailbox are lost then, as with any virtual actor,
// and so are those of a worker whose lease was lost. A grain costs one lease: two writes of the store for an
// activation, and no renewals of its own where the store is a SessionKeeper.
package grain
