// Package membership tells the components of Concord who is in the cluster.
//
// Proto.Actor publishes the members its provider lists, as ClusterTopology events, and nothing
// else: no roles, no age, no word to a member that the others have expelled. This package turns
// those events into immutable, ordered views (View), and adds what is missing by exchanging small
// Hello messages between the members:
//
//   - Identity. A member is an id of the provider and an incarnation of the process. Ourselves we
//     recognise by address, since several providers make up ids of their own. When two listed
//     members share one address, a process has been restarted: once the newer one has said its
//     stamp, the older one is left out of the view.
//   - Age. Each member chooses a stamp when it joins: not below its clock, and above every stamp it
//     has heard of by then. Age is the order of (stamp, id). It is the same at every member that has
//     heard the same hellos, which is what equal View.Hash values say. Whose stamp is not known yet
//     is younger than all, and never elected.
//   - Removal. A member that its own provider drops, or of which a majority of its peers say twice
//     that they do not list it, is Removed. Proto.Actor never lets the same member back in, so only
//     a new process can join again.
//   - Roles. A kind named "role.x" announces role x.
//
// # Guarantees
//
// Views arrive in order; the latest is always at hand. Within one view every answer is consistent.
// Between members nothing is guaranteed: under a partition two members may each be the oldest of
// their views. Membership is a hint for liveness; whatever must not happen twice needs a lease.
//
// # Order of use
//
//  1. Attach the service before the member starts, so that no event is missed.
//  2. Register with WhenUp what has to be spawned. Processes spawned earlier would carry an
//     address that no other member can answer to.
//  3. Start the member. See package node.
//
// The protocol is the pure state machine in core*.go; actor.go translates between it and messages.
package membership
