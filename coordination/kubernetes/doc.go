// Package kubernetes keeps leases in Lease objects of coordination.k8s.io/v1, one for each name, for
// Kubernetes 1.24 or later.
//
//	store, err := kubernetes.InCluster(kubernetes.Config{}) // in a pod; New takes any other client
//	session, err := coordination.Open(store, coordination.Config{})
//
// # What is in the cluster
//
// All fields of the Lease mean what they mean to everybody: holderIdentity is Owner and a number of the
// session, empty when nobody holds the lease; leaseDurationSeconds is the TTL, rounded up; acquireTime,
// renewTime and leaseTransitions are kept. Token, TTL and what identifies the session are annotations.
// kubectl get lease shows the holder. The object is named after the lease if that is a DNS subdomain of
// at most 253 bytes, else after a hash of the name; an annotation has the full name.
//
// Leader election of client-go (leaderelection, with a LeaseLock on the object that ObjectName tells)
// excludes sessions of this package and is excluded by them, both ways; either may take over after the
// other. Such a leader is shown as the holder under its identity, with the last token of the name.
//
// With Config.Exclusive a session renews one object for all its leases, named after a hash, and deletes it in the end.
// The objects of the leases then show the largest duration there is, and two annotations more say what they rest on. Such a
// lease excludes client-go as before, and client-go takes it after a release; but from a holder that has died only a
// session of this package takes it over.
//
// A document (coordination.Documents) is an annotation, in base64, of a Lease object that nobody holds; DocumentName tells
// the object's name:
//
//	kubectl get lease concord-document.shop.members -o jsonpath='{.metadata.annotations.concord-go\.github\.io/document}' | base64 -d
//
// # Guarantees
//
// Reads are consistent and writes conditional on the resourceVersion, so of all contenders one wins. No
// clock of another machine counts: contenders wait until they have seen the object unchanged for the
// holder's TTL on their own clocks. Tokens rise by one with each tenure. Objects of leases are never deleted; if
// somebody deletes one, tokens go on from the cluster's resourceVersion, above every token the name had.
// Only a cluster restored from a backup can set them back.
//
// A release is noticed by a watch. With the API server away nobody acquires or renews, and holders stop in
// time. A connection that has died without a word is noticed by client-go after 45 seconds; for TTLs
// that are to survive this, set HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS lower.
//
// # Duties
//
// The account needs get, list, watch, create and patch on leases in its namespace; list and watch for what
// is deleted or released, the rest for every call. With Config.Exclusive also delete, or an object stays behind for each
// session. examples/kubernetes has a manifest. Anybody who may
// write Leases there may take yours: give them a namespace of their own if you do not trust its users.
package kubernetes
