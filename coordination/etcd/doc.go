// Package etcd keeps leases in etcd, version 3.4 or later.
//
//	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"10.0.0.5:2379"}})
//	store, err := etcd.New(client, etcd.Config{})
//	session, err := coordination.Open(store, coordination.Config{})
//	defer client.Close() // after session.Close
//
// # What is in etcd
//
// Per lease name two keys: concord/leases/NAME holds the record and is never deleted;
// concord/leases/NAME/holder exists while the lease is held. The second is bound to an etcd lease that
// lives at least as long as the holder believes to hold: a write of the session first prolongs it, unless
// it has the TTL left. A session has one etcd lease, whatever number of names it holds. It lasts for half a TTL
// longer than needed, so that most writes find it long enough.
//
// The second key is also what locks of etcd itself wait for. Mutex and Election of the package
// clientv3/concurrency, and etcdctl lock, with the name that Store.LockName gives, exclude sessions of
// this package and are excluded by them. Such a lock is shown as a holder, with its key as Owner and
// its creation revision as token. Between the two kinds there is no queue: who is there first.
//
// # Guarantees
//
// Reads are linearizable and writes conditional, so two sessions never both get a lease. Tokens are
// taken from etcd's revision: those of one name grow over everything, other locks, deleted keys and a
// deleted database of leases included; they do not rise by one. Only a restored snapshot can set the
// revision back; restore with a bump (etcdutl snapshot restore --bump-revision).
//
// When a holder has died, etcd lets the second key go, by its own clock and after one and a half TTL at most. Whoever looks
// next finds the lease free. A contender that has seen the record unchanged for the
// TTL, on its own clock, takes it without etcd's word; locks of etcd itself wait for that. A change of etcd's leader prolongs
// all etcd leases, and a holder does not notice it as long as a majority answers within
// Config.OperationTimeout. Without a majority nobody acquires or renews, and holders stop in time.
//
// # Duties
//
// With authentication, a client needs read and write on the prefix. One that may only read sees holders
// (Lease.Holder); its attempts to acquire end as unknown. etcd leases below two seconds are prolonged by
// etcd, which makes locks of others wait a little longer and hurts nothing.
package etcd
