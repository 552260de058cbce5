// Package zookeeper is a cluster provider that keeps the list of members in Apache ZooKeeper, version
// 3.5 or later.
//
//	provider := zookeeper.New(zookeeper.Config{Servers: []string{"10.0.0.9:2181"}})
//
// Each member has an ephemeral node, BASE/CLUSTER/…actor-NUMBER, and watches the children of its
// cluster's node. Nodes and their data are those of Proto.Actor's provider of the same name, so members
// with either of them see each other. It differs in that
//
//   - a member has another id in each life. Proto.Actor's has one per address, and since an id that has
//     left is banned for good, a member that is restarted on its port, in whatever order, is never
//     listed again by those that saw it leave. Do not mix the two for longer than a migration takes;
//   - it gives up at start after ten seconds, with an error that names the servers;
//   - it does not try again without a pause while ZooKeeper is away;
//   - it elects no leader: see package singleton.
//
// # Guarantees
//
// A member is listed as soon as ZooKeeper has answered, and is off the list when it has shut down. One
// whose process has died, is frozen or cut off from ZooKeeper is dropped after Config.SessionTimeout. Its
// id is then banned by those that dropped it, and only a new life (node.Run) or process comes back. A
// new life at the address of a dead one replaces it at once.
//
// While ZooKeeper does not answer the last list stands, however long that takes. When it is back, members
// whose sessions have expired meanwhile have one SessionTimeout and two seconds to list themselves again
// before they are dropped.
package zookeeper
