// Package zookeeper keeps leases in Apache ZooKeeper, version 3.6 or later.
//
//	store, err := zookeeper.Open(ctx, zookeeper.Config{Servers: []string{"10.0.0.5:2181", "10.0.0.6:2181"}})
//	session, err := coordination.Open(store, coordination.Config{})
//	defer store.Close() // after session.Close
//
// # What is in ZooKeeper
//
// Each lease name has one persistent node, /concord/leases/NAME, whose data is the record; it is
// never deleted. While the lease is held the node has an ephemeral sequential child, which
// disappears with the holder's ZooKeeper session. If the lease is held forever, the child is
// persistent and disappears with the release, forced or not. The request that writes the record
// also creates or removes the child, so only an operator can leave a child that no record names,
// and the next read removes it. This is the lock recipe of ZooKeeper. So zk.Lock of go-zookeeper,
// and other locks that sort by the number after "lock-" (Curator's InterProcessMutex), on the path
// that Store.LockPath returns, exclude sessions of this package and are excluded by them. Such a
// lock is shown as a holder, with its node as Owner and the transaction that created it (czxid) as
// token. There is no queue between locks and sessions: the first to claim the lease gets it.
//
// A session renews one record for all its leases, /concord/leases/%sessions/NONCE, which also has
// such a child, and is removed when the session ends. The record of a crashed session is removed by
// the session that takes over one of its leases, or after two days, a few at a time, when other
// sessions end.
//
// A document (leasestore.Documents) is the data of /concord/leases/%documents/NAME, after a line
// that names the only child of that node. The child is different each time that the document is
// created, and a swap depends on it and on the version of the data.
//
// A store has one ZooKeeper session, which all its coordination sessions share.
//
// # Guarantees
//
// A tenure begins in one write: a child takes its place in the line and the record is replaced, on
// two conditions. The version of the record's data must be unchanged, and the child must get
// exactly the number that shows that no other place has joined the line since the record was read.
// So two sessions never both get a lease. Writes go through ZooKeeper's quorum. A sync precedes
// each read of a lease. It is no quorum operation: a leader may answer it although another server
// has confirmed a write a moment before, or although it has been replaced and does not know it. A
// session may then be told that a lease is held that has just been released. No lease is held twice
// because of that: nothing is decided without a conditional write, and what a store reads never
// goes back in time. A transaction precedes each read of a document. A write on a node that was
// deleted and created again, and has had as many writes and children since, is detected by its
// answer and reverted, and the result is a conflict.
//
// A record that is held through a session record is written only while the child of the session
// record exists. Both belong to one ZooKeeper session. When that ends, all these children disappear
// at once, claims through the session record are refused, and its renewal is a conflict. The
// session then begins another tenure, in its next ZooKeeper session, with no leases. It never
// resumes the old tenure.
//
// Tokens are kept in the record and begin above the last transaction (zxid) that touched the node
// or, if the node was deleted, above that of the deletion. They cannot be the czxid of the holder's
// own node, because a token is chosen before the write that contains it, but they are comparable
// with it. The tokens of one name grow across everything, including other locks and deleted nodes,
// and do not rise by one. Only a lost or restored database sets them back.
//
// When a holder has died, ZooKeeper removes its child after the session timeout. The next read
// finds the lease free. A contender that has seen the record unchanged for the holder's TTL, on its
// own clock, does not wait for that. To ensure that no lock of another program is granted while a
// holder believes that it holds the lease, a TTL may be at most 3/4 of the session timeout that the
// server has granted; a longer TTL is refused. (The rest covers the delay until servers notice that
// a session is alive: half a tick, where a session has at least two.) With the defaults of both
// sides that is 30 s of 40 s. For longer TTLs raise maxSessionTimeout of the servers, and
// SessionTimeout. An operator who closes the ZooKeeper session of a living store lets others in
// before the holder knows.
//
// If a server is silent for 200 ms, the store sends it another request: servers of 3.6.0 to 3.8.0
// may miss a wake-up, and then continue. After 2.2 s, or a tenth of the session timeout if that is
// less, the store leaves a silent server for the next one. Without a quorum no session acquires or
// renews, and holders stop in time.
//
// # Duties
//
// The account needs all permissions except admin on the node of Path and below, and create on the
// nodes above it if they do not exist. Config.ACL sets the permissions of new nodes. A watch on a
// lease costs ZooKeeper two watches for each name, until the lease changes, and two reads every 4
// seconds.
//
// docs/stores.md compares the stores, and docs/leases.md is the guide to leases.
package zookeeper
