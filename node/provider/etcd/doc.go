// Package etcd is a cluster provider that keeps the list of members in etcd, version 3.4 or later.
//
//	provider := etcd.New(etcd.Config{Client: clientv3.Config{Endpoints: []string{"10.0.0.9:2379"}}})
//
// Each member has a key, BASE/CLUSTER/ID, on an etcd lease of its own, and watches the keys of its
// cluster. Keys and values are those of Proto.Actor's provider of the same name, so members with
// either of them see each other. It differs in that it
//
//   - closes its client, so that a life leaves nothing behind;
//   - gives up at start after ten seconds, with an error that names the endpoints, where Proto.Actor's
//     waits for ever;
//   - misses no member that joins or leaves between the first list and the beginning of the watch;
//   - reads CLUSTER up to the "/", so that shop does not see the members of shop2. (A cluster shop with
//     Proto.Actor's own provider still sees those of shop2, whatever they run with.)
//
// # Guarantees
//
// A member is listed as soon as etcd has answered, and is off the list when it has shut down. One whose
// process has died, is frozen or cut off from etcd is dropped after Config.TTL: by then its key has
// expired. Its id is then banned by those that dropped it, and only a new life (node.Run) or process
// comes back.
//
// While etcd does not answer the last list stands, however long that takes. When it is back, members
// whose keys have expired meanwhile have one TTL and two seconds to list themselves again before they
// are dropped.
//
// # Duties
//
// With authentication, the user needs read and write on the prefix BASE/CLUSTER/.
package etcd
