// Package etcd keeps leases in etcd, version 3.4 or later.
//
//	client, err := etcd.Dial(clientv3.Config{
//		Endpoints: []string{"10.0.0.5:2379"},
//		Logger:    zap.NewNop(),
//	})
//	store, err := etcd.New(client, etcd.Config{})
//	session, err := coordination.Open(store, coordination.Config{})
//	defer client.Close() // after session.Close
//
// A client of clientv3.New serves too, but a connection that falls silent without an error then
// costs a session its leases: Dial closes such a connection in time. Without a Logger the client
// writes a line to standard error for each request that fails: hundreds a minute during an outage,
// which the session reports too.
//
// # What is in etcd
//
// Each lease name has two keys: concord/leases/NAME holds the record and is never deleted;
// concord/leases/NAME/holder exists while the lease is held. The second key is bound to an etcd
// lease that lives at least as long as the holder considers itself the holder.
//
// A session renews one record for all its leases, concord/leases/concord.session.NONCE. Each of its
// tenures has one etcd lease. This record, its holder's key and the holder's keys of all leases
// held through it are on that etcd lease, so they live and end together. A renewal needs an
// etcd lease with the TTL left. The etcd lease lasts two TTLs, and about every second renewal keeps
// it alive in the background, for the next one. If the etcd lease has ended, because the session
// was idle for that long or because an operator has revoked it, the renewal is refused and all
// leases are lost; the same tenure never gets another etcd lease. Who revokes the etcd lease of a
// session that lives, or deletes the second key of a lease, takes its leases from it by force:
// others may claim them before its next renewal, and then only the token tells who holds them.
//
// The second key of a lease that is held forever (coordination.Config.Forever) is on no etcd lease.
// The release deletes it, forced or not.
//
// A document (leasestore.Documents) is the value of concord/leases/,document/NAME. Its version is
// the revision of its last change.
//
// Locks of etcd itself also wait for the second key of a lease. Mutex and Election of package
// clientv3/concurrency, and etcdctl lock, with the name that Store.LockName returns, exclude
// sessions of this package and are excluded by them. Such a lock is shown as a holder, with its key
// as Owner and its creation revision as token. There is no queue between locks and sessions: the
// first to claim the lease gets it.
//
// # Guarantees
//
// Reads are linearizable and writes conditional, so two sessions never both get a lease. The token
// of a tenure is the revision at which its holder's key was created, or a larger number. The tokens
// of one name grow across everything, including other locks, deleted keys and a deleted database of
// leases; they do not rise by one. Only a restored snapshot can set the revision back; restore with
// a bump (etcdutl snapshot restore --bump-revision).
//
// When a holder has died, etcd deletes the holder's keys, by etcd's own clock and after
// two TTLs at most. The next read finds the leases free. The session leaves only a blank record for
// each lease name. A contender that has seen the record unchanged for the TTL, on its own clock,
// takes the lease without waiting for etcd; locks of etcd itself wait for the deletion. A change of
// etcd's leader prolongs all etcd leases, and a holder does not notice it as long as a majority
// answers within Config.OperationTimeout. Without a majority no session acquires or renews, and
// holders stop in time.
//
// # Duties
//
// With authentication, a client needs read and write permission on the prefix. A client that may
// only read sees holders (Lease.Holder); its attempts to acquire return an unknown outcome. etcd
// extends etcd leases below two seconds, which makes locks of other programs wait a little longer
// and does no harm.
//
// docs/stores.md compares the stores, and docs/leases.md is the guide to leases. Program
// examples/bank uses this store.
package etcd
