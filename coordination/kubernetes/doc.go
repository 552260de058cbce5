// Package kubernetes keeps leases in Lease objects of coordination.k8s.io/v1, one for each name,
// for Kubernetes 1.24 or later.
//
//	store, err := kubernetes.InCluster(kubernetes.Config{}) // in a pod; New takes any other client
//	session, err := coordination.Open(store, coordination.Config{})
//
// # What is in the cluster
//
// All fields of the Lease have their usual meaning: holderIdentity is Owner and a number of the
// session, empty when nobody holds the lease; leaseDurationSeconds is the TTL, rounded up;
// acquireTime, renewTime and leaseTransitions are maintained. The token, the TTL and the identity
// of the session are annotations. kubectl get lease shows the holder. The object is named after the
// lease if that name is a DNS subdomain of at most 253 bytes, otherwise after a hash of it; an
// annotation contains the full name.
//
// Leader election of client-go (leaderelection, with a LeaseLock on the object that ObjectName
// returns) and sessions of this package exclude each other; either may take over after the other.
// Such a leader is shown as the holder under its identity, with the last token of the name.
//
// With Config.Exclusive a session renews one object for all its leases, named after a hash, and
// deletes it when the session ends. The objects of the leases then show the largest possible
// duration, and two more annotations say how the lease is kept alive. Such a lease excludes
// client-go as before, and client-go can take it after a release. From a holder that has died, only
// a session of this package takes it over.
//
// A document (leasestore.Documents) is an annotation, in base64, of a Lease object that nobody
// holds. The object's name is concord-document.NAME, or one with a hash if that is no valid name:
//
//	kubectl get lease concord-document.shop.members -o jsonpath='{.metadata.annotations.concord-go\.github\.io/document}' | base64 -d
//
// # Guarantees
//
// Reads are consistent and writes are conditional on the resourceVersion, so exactly one contender
// wins. No clock of another machine matters: contenders wait until they have seen the object
// unchanged for the holder's TTL on their own clocks. Tokens rise by one with each tenure. Objects
// of leases are never deleted; if someone deletes one, tokens continue from the cluster's
// resourceVersion, above every token that the name had. Only a cluster restored from a backup can
// set them back.
//
// A watch notices a release. While the API server is unavailable no session acquires or renews, and
// holders stop in time. InCluster makes a client that closes a connection that has fallen silent
// before it costs a lease. Another client notices that after 45 seconds, unless
// HTTP2_READ_IDLE_TIMEOUT_SECONDS and HTTP2_PING_TIMEOUT_SECONDS are set lower.
//
// # Duties
//
// The account needs get, list, watch, create and patch on leases in its namespace: list and watch
// for deleted or released leases, the others for every call. With Config.Exclusive it also needs
// delete, or one object stays behind for each session. examples/kubernetes has a manifest. Anyone
// who may write Leases there can take yours: if you do not trust the users of the namespace, give
// the leases a namespace of their own.
//
// docs/stores.md compares the stores, and docs/leases.md is the guide to leases. Program
// examples/bank uses this store.
package kubernetes
