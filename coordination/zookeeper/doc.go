// Package zookeeper keeps leases in Apache ZooKeeper, version 3.6 or later.
//
//	store, err := zookeeper.Open(ctx, zookeeper.Config{Servers: []string{"10.0.0.5:2181", "10.0.0.6:2181"}})
//	session, err := coordination.Open(store, coordination.Config{})
//	defer store.Close() // after session.Close
//
// # What is in ZooKeeper
//
// Per lease name one persistent node, /concord/leases/NAME, whose data is the record; it is never deleted.
// While the lease is held it has an ephemeral sequential child, which ends with the holder's ZooKeeper session; if it is
// held for ever, a persistent one, which goes when it is released or an operator forces that. The request that writes the
// record makes or removes the child too, so one that no record names is left by an operator alone, and whoever looks
// removes it. That is the lock recipe of ZooKeeper, so zk.Lock of go-zookeeper and others that sort by the number after
// "lock-" (Curator's InterProcessMutex), on the path that Store.LockPath gives, exclude sessions of this package
// and are excluded by them. Such a lock is shown as a holder, with its node as Owner and the transaction that
// made it (czxid) as token. Between the two kinds there is no queue: who is there first.
//
// A session renews one record for all its leases, /concord/leases/%sessions/NONCE, which has such a child too, and is
// removed when the session ends. That of a session that has crashed is removed by who takes over one of its leases, or
// two days later, a few at a time, when other sessions end.
//
// With coordination.Config.Fair, who waits has an ephemeral child in /concord/leases/%queues/NAME, whose name tells all that
// there is to tell, so that a look costs one request for the whole queue and one for the own place. Its node is a
// container, which ZooKeeper removes when nobody waits. Beyond 256 places, that which was not written for longest goes.
//
// A store has one ZooKeeper session, which all its coordination sessions share.
//
// # Guarantees
//
// A tenure begins in one write: a child takes its place in the line, and the record is replaced, if the version of its
// data is still the same and the child gets the very number that says that nobody else has come to the line since it was
// read. So two sessions never both get a lease. Writes go through ZooKeeper's quorum. A read is preceded by a sync, which
// a leader that has just been deposed may answer once more: what it shows is then old, and a write that rests on it is
// refused. A write on a node that was deleted and made anew, and had as many writes and children since, is noticed by its
// answer, taken back, and then a conflict.
//
// What is held through a session record is written only while the child of that record exists. Both are of one ZooKeeper
// session: when that ends, they all go at once, claims through it are refused, its renewal is a conflict, and the session
// begins another tenure, in its next ZooKeeper session, with nothing held. It is never taken up where it was.
//
// Tokens are kept in the record and begin above the last transaction (zxid) that touched the node; after it was
// deleted, above that of the deletion. They cannot be the czxid of the holder's own node, since a token is chosen before
// the write that it goes with; but they are comparable with it: those of one name grow over everything, other locks
// and deleted nodes included, and do not rise by one. Only a lost or restored database sets them back.
//
// When a holder has died, ZooKeeper lets its child go after the session timeout. Whoever looks next finds the
// lease free. A contender that has seen the record unchanged for the holder's TTL, on its own clock, does not wait for
// that. So that no lock of others is granted while a holder believes to hold, a TTL may be at most 3/4 of the
// session timeout that the server has granted (the rest is what servers may lag behind in noticing that a session is
// alive: half a tick, where a session has at least two); a longer one is refused. With the defaults of both sides that is
// 30 s of 40 s. For longer TTLs raise maxSessionTimeout of the servers, and SessionTimeout. An operator who closes
// the ZooKeeper session of a living store lets others in before the holder knows.
//
// A server that is silent for 200 ms is asked something else: those of 3.6.0 to 3.8.0 may miss a wake-up, and go on then.
// One that does not answer is left for the next one after 4 s or a tenth of the session timeout. Without a quorum nobody
// acquires or renews, and holders stop in time.
//
// # Duties
//
// The account needs all rights but admin on the node of Path and below, and create on what is above it if it does not
// exist. Config.ACL says who may do what with the nodes that are made. Who watches leases costs ZooKeeper two watches
// for each name, until something happens to it, and two reads every 4 seconds.
package zookeeper
