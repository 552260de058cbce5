// Package leasetest is the conformance suite of lease stores, for those of this module and for yours:
//
//	func TestStore(t *testing.T) {
//		leasetest.Run(t, func(t *testing.T) coordination.Store { return mystore.New(t) }, leasetest.Options{})
//	}
//
// It checks the contract of coordination.Store, and on top of it what every session promises, under
// faults and in virtual time. Each claim is a subtest; its name and its failures begin with the ids of
// what it covers:
//
//	S  the store alone: versions, conditional writes, values, names, watching, ended contexts
//	A  names, owners, many leases, closing
//	B  acquire: contention, doubt, lost answers, giving up, waiting
//	K  check and validity
//	D  renewal, loss, partition, crash, forced release
//	E  release
//	F  fencing tokens
//	G  records: other TTLs, deleted and damaged ones
//	H  whole histories: linearizability, and a paused holder against a fenced target
//
// If the store is a coordination.SessionKeeper, all claims about sessions are checked twice: with a renewal for each
// lease, and below Shared with one for all.
//
// Three claims are observed behind every test: K8, valid times of two nodes never overlap; F1, tokens
// grow; D17, calls of the store do not overlap on one lease.
//
// Live adds what takes a real server and real time: watching, many contenders, dead clients and servers.
//
// What the suite does not judge: clocks that run at wrong rates, since all nodes of a test share one,
// and how long a call may take, which Config.OperationTimeout bounds from outside.
package leasetest
