// Package leasetest is the conformance suite for lease stores, both those of this module and your
// own:
//
//	func TestStore(t *testing.T) {
//		leasetest.Run(t, func(t *testing.T) leasestore.Store { return mystore.New(t) }, leasetest.Options{})
//	}
//
// It checks the contract of leasestore.Store and the guarantees of every session on top of it,
// under faults and in virtual time. Each claim is a subtest. Its name and its failures begin with
// the ids of the claims it covers:
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
// If the store is a leasestore.SessionKeeper, all claims about sessions are checked twice: with a
// renewal for each lease and, below Shared, with one renewal for all.
//
// Three claims are checked during every test: K8, the valid times of two nodes never overlap; F1,
// tokens grow; D17, neither reads nor writes of one lease overlap.
//
// Live checks what needs a real server and real time: watching, many contenders, dead clients and
// servers.
//
// The suite does not check clocks that run at wrong rates, since all nodes of a test share one, or
// how long a call may take, which Config.OperationTimeout bounds from outside.
//
// docs/stores.md says how to write a store.
package leasetest
