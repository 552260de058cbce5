// Package etcd keeps leases in etcd, version 3.4 or later.
//
//	client, err := clientv3.New(clientv3.Config{
//		Endpoints:         []string{"10.0.0.5:2379"},
//		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
//	})
//	store, err := etcd.New(client, etcd.Config{})
//	session, err := coordination.Open(store, coordination.Config{})
//	defer client.Close() // after session.Close
//
// Without the keepalive a connection that lived through a partition may come back half a minute after its end.
//
// # What is in etcd
//
// Per lease name two keys: concord/leases/NAME holds the record and is never deleted;
// concord/leases/NAME/holder exists while the lease is held. The second is bound to an etcd lease that
// lives at least as long as the holder believes to hold.
//
// A session renews one record for all its leases, concord/leases/concord.session.NONCE. Each of its tenures has one etcd
// lease, on which are this record, its holder's key, and those of all leases that are held through it: they live and end
// together. A renewal first prolongs the etcd lease, unless it has the TTL left. It lasts for half a TTL longer than needed, so that
// it is prolonged about once in two renewals. If it has ended, because the session did nothing for so long or because
// an operator has revoked it, the renewal is refused and all leases are lost; it is never followed by another one in the
// same tenure.
//
// The second key of a lease that is held for ever (coordination.Config.Forever) is on no etcd lease: it goes by the
// release, forced or not.
//
// Who waits in order (coordination.Config.Fair) has a key below concord/leases/,queue/NAME/, on an etcd lease of its
// session, and the order is that of their creation. Once per look at the lease it is written again, and the others
// are read, in one transaction. A queue keeps 256 places.
//
// A document (coordination.Documents) is the value of concord/leases/,document/NAME, its version the revision of its last
// change.
//
// The second key of a lease is also what locks of etcd itself wait for. Mutex and Election of the package
// clientv3/concurrency, and etcdctl lock, with the name that Store.LockName gives, exclude sessions of
// this package and are excluded by them. Such a lock is shown as a holder, with its key as Owner and
// its creation revision as token. Between the two kinds there is no queue: who is there first.
//
// # Guarantees
//
// Reads are linearizable and writes conditional, so two sessions never both get a lease. The token of a tenure is
// the revision that its holder's key was created at, or a larger one: those of one name grow over everything, other locks,
// deleted keys and a deleted database of leases included; they do not rise by one. Only a restored snapshot can set the
// revision back; restore with a bump (etcdutl snapshot restore --bump-revision).
//
// When a holder has died, etcd lets its second keys go, by its own clock and after one and a half TTL at most. Whoever
// looks next finds the leases free; nothing stays of the session but a blank record for each lease name. A contender
// that has seen the record unchanged for the TTL, on its own clock, takes the lease without etcd's word; locks of etcd
// itself wait for that. A change of etcd's leader prolongs all etcd leases, and a holder does not notice it as long as a
// majority answers within Config.OperationTimeout. Without a majority nobody acquires or renews, and holders stop in
// time.
//
// # Duties
//
// With authentication, a client needs read and write on the prefix. One that may only read sees holders
// (Lease.Holder); its attempts to acquire end as unknown. etcd leases below two seconds are prolonged by
// etcd, which makes locks of others wait a little longer and hurts nothing.
package etcd
