// Package zookeeper is a cluster provider that keeps the list of members in Apache ZooKeeper,
// version 3.5 or later.
//
//	provider := zookeeper.New(zookeeper.Config{Servers: []string{"10.0.0.9:2181"}})
//
// Each member has an ephemeral node, BASE/CLUSTER/…actor-NUMBER, and watches the children of its
// cluster's node. Nodes and their data match those of Proto.Actor's provider of the same name, so
// members with either of them see each other. It differs from that provider as follows:
//
//   - A member has a different id in each incarnation. In Proto.Actor's provider the id depends on
//     the address only, and an id that has left is banned permanently, so a member that restarts on
//     its port is never listed again by members that saw it leave. Do not mix the two providers for
//     longer than a migration takes.
//   - It gives up at start after ten seconds, with an error that names the servers.
//   - It pauses between retries while ZooKeeper is unavailable.
//   - It elects no leader: see package singleton.
//
// # Guarantees
//
// A member is listed as soon as ZooKeeper has answered, and is removed from the list when it has
// shut down. A member whose process has died, is frozen or is cut off from ZooKeeper is dropped
// after Config.SessionTimeout. The members that dropped it ban its id: it can come back only with a
// new incarnation (node.Run) or a new process. A new incarnation at the address of a dead one
// replaces it at once.
//
// While ZooKeeper does not answer, the last list remains in effect, however long that takes. When
// ZooKeeper is back, members whose sessions have expired in the meantime have one SessionTimeout
// plus two seconds to list themselves again before they are dropped.
//
// docs/providers.md compares the providers. Program examples/providers uses any of them.
package zookeeper
