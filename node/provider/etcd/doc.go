// Package etcd is a cluster provider that keeps the list of members in etcd, version 3.4 or later.
//
//	provider := etcd.New(etcd.Config{Client: clientv3.Config{Endpoints: []string{"10.0.0.9:2379"}}})
//
// Each member has a key, BASE/CLUSTER/ID, on its own etcd lease, and watches the keys of its
// cluster. Keys and values match those of Proto.Actor's provider of the same name, so members with
// either of them see each other. Unlike that provider, it
//
//   - closes its client, so that nothing of an incarnation remains;
//   - gives up at start after ten seconds, with an error that names the endpoints, where
//     Proto.Actor's provider waits forever;
//   - does not miss members that join or leave between the first list and the start of the watch;
//   - matches CLUSTER up to the "/", so that shop does not see the members of shop2. (A member of
//     cluster shop with Proto.Actor's own provider still sees those of shop2, whichever provider
//     they use.)
//
// # Guarantees
//
// A member is listed as soon as etcd has answered, and is removed from the list when it has shut
// down. A member whose process has died, is frozen or is cut off from etcd is dropped after
// Config.TTL, when its key has expired. The members that dropped it ban its id: it can come back
// only with a new incarnation (node.Run) or a new process.
//
// While etcd does not answer, the last list remains in effect, however long that takes. When etcd
// is back, members whose keys have expired in the meantime have one TTL plus two seconds to list
// themselves again before they are dropped.
//
// # Duties
//
// With authentication, the user needs read and write permission on the prefix BASE/CLUSTER/.
//
// docs/providers.md compares the providers. Program examples/providers uses any of them.
package etcd
