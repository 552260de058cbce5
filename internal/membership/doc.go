// Package membership tells the components of Concord who is in the cluster, and heals a cluster
// that was split.
//
// Proto.Actor publishes the members its provider lists, as ClusterTopology events, and nothing
// else: no roles, no age, no word to a member that the others have expelled. It never lists a
// member id again that it has dropped. This package turns those events into immutable, ordered
// views (View), and adds what is missing by exchanging small Hello messages between the members:
//
//   - Identity. A member is an id of the provider and an incarnation of the process. Ourselves we
//     recognise by address, since several providers make up ids of their own. When two listed
//     members share one address, a process has been restarted: once the newer one has said its
//     stamp, the older one is left out of the view.
//   - Age. Each member chooses a stamp when it joins: not below its clock, and above every stamp it
//     has heard of by then. Age is the order of (stamp, id). It is the same at every member that has
//     heard the same hellos, which is what equal View.Hash values say. Whose stamp is not known yet
//     is younger than all, and never elected.
//   - Roles. A kind named "role.x" announces role x.
//   - Removal. The life of a member ends (View.Removed, View.Cause) when its own provider drops
//     it, and when it gives way after a split. Another life, with a new id, can join again; package
//     node begins it.
//
// # How a split heals
//
// After a partition or a pause, members have dropped each other's ids for good, and nobody sends to
// a member that it does not list. Without help both sides would go on alone for ever. Of each pair
// of running members that do not both list each other, one has to end its life:
//
//	both list each other ◀──────────────────────────────────────────────┐
//	      │ one drops the other                                 listed, with its new id
//	      ▼                                                              │
//	    lost ──hello, answered──▶ conflict ──patience──▶ asking ──permit──▶ gives way
//	      ▲                          │  ▲                   │
//	      └────────── silence ───────┘  └─── view changes ──┘
//
// In detail:
//
//  1. Lost addresses. The addresses of members once listed, and of those that members in conflict
//     name, are sent hellos: every 2 seconds for 2 minutes, then ever less often, down to once a
//     minute. A member asks ten a second at most, on average. An address is forgotten when it is listed again, after a day, or when its member has
//     said good-bye.
//  2. Evidence. A hello that names our incarnation, of a running member that does not list us or
//     that we do not list: the two are in conflict. Evidence is certain if one has dropped the
//     other. Otherwise it may be a join in progress, and takes ten times the patience. If neither
//     has ever listed the other, no id is banned: the two are reported (Split), but neither gives
//     way.
//  3. Order. Members in conflict compare their fragments: the one whose member holds the arbiter
//     lease comes first (SetArbiter), then the one with more members that list each other, then a
//     member that is not disowned by most of its view, then the fragment with the older oldest
//     member, then the older member, then the id. When evidence is certain, or has lasted for the
//     patience, a member asks its whole view whether it is still listed there.
//  4. Permit. When evidence and its own view have lasted for the patience, a member asks the first
//     of those with which it is in conflict, if that one is before it, for a permit. A permit is
//     given by a member that is before the asker by its own data too, has a settled view, is not
//     leaving, has not asked for a permit itself, and waits for fewer than a quarter of its
//     fragment. While it waits, it does not give way. A permit ends when another member is listed
//     at the asker's address, when the asker declines it, and after 30 seconds.
//  5. Giving way. The life ends with ErrGaveWay, or with ErrExpelled if most of the members that it
//     lists do not list it; such a member needs no patience, but a permit as well.
//
// # Guarantees
//
// Views arrive in order; the latest is always at hand. Within one view every answer is consistent.
// Between members nothing is guaranteed: under a partition two members may each be the oldest of
// their views. Membership is a hint for liveness; whatever must not happen twice needs a lease.
//
// Members never give way all at once: the last that did had a permit of a member that had not.
// Nobody gives way into a network that is still broken: the permit answers a request of the last 5
// seconds. Both hold whatever is lost, late or stale, and whoever crashes, but not if a member's
// own provider drops it: that life ends at once (ErrDropped).
//
// After the last fault all members list each other again. How long it takes depends on patience,
// provider and number of fragments: with a patience of 2 seconds and rounds of half a second 4 to 6
// seconds for one member that was cut off, at most 20 for fragments of five members. If the
// patience is at least two rounds of the provider, one split costs no more lives than there are
// members outside the largest fragment. It costs more if views change meanwhile; package node
// counts lives, and Tune lets patience grow with them.
//
// # Cost
//
// At rest each pair exchanges two hellos in 7 seconds, and in a cluster of more than ten members
// two in 0.7 seconds for each of them: so a member sends three hellos in two seconds, of some 90
// bytes, however many there are. A newcomer exchanges a few hellos with each member. A crash costs
// each of the others a hello in two seconds to the address, for two minutes.
//
// # Limits
//
// A hello is what its sender says, and package node sees to it that nobody says it in the name of
// another. TLS or a secret keep strangers out. Without, a stranger that listens at an address of its
// own can say hello, being told apart by the name of the cluster only. What it causes is bounded: 8
// answers a second to addresses of its choice, 64 members in conflict, a permit for a quarter of the
// time. It cannot make a member give way that sees another one: an address is familiar only when it
// is listed here, was, or was named by a member at a familiar address, and what others claim counts
// for nothing but the report of a split. Two clusters of one name must not reach each other.
//
// A cluster that loses more than 256 members at once asks for the last 256. Members of versions
// before the permits never give way to others, and are expelled as they were; a mixed cluster heals
// once all have been replaced.
//
// # Order of use
//
//  1. Attach the service before the member starts, so that no event is missed; call Tune if need be.
//  2. Register with WhenUp what has to be spawned. Processes spawned earlier would carry an
//     address that no other member can answer to.
//  3. Start the member. See package node.
//
// The protocol is the pure state machine in core*.go; actor.go translates between it and messages.
package membership
