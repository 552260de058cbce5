// Package membership reports to the components of Concord which members are in the cluster, and
// heals a split cluster.
//
// Proto.Actor publishes the members listed by its provider as ClusterTopology events, and nothing
// else: no roles, no age, and no message to a member that the others have expelled. It never lists
// a dropped member id again. This package turns the events into immutable, ordered views (View),
// and adds the missing information by exchanging small Hello messages between the members:
//
//   - Identity. A member is identified by the provider's id and an incarnation of the process. A
//     member recognises itself by address, since several providers generate their own ids. If two
//     listed members share one address, a process has been restarted: once the newer one has
//     reported its stamp, the older one is left out of the view.
//   - Age. Each member chooses a stamp when it joins: not below its clock, and above every stamp it
//     has heard of by then. Age is the order of (stamp, id). It is the same at all members that
//     have heard the same hellos, which they can tell by equal values of View.Hash. A member whose
//     stamp is not known yet is younger than all others, and never elected.
//   - Roles and versions. A kind named "role.x" announces role x, and "version.1.2" that the member
//     runs version 1.2 of the application.
//   - Removal. The incarnation of a member ends (View.Removed, View.Cause) when its own provider
//     drops it, and when it steps down after a split. Another incarnation, with a new id, can
//     rejoin; package node begins it.
//
// # How a split heals
//
// After a partition or a pause, members have permanently dropped each other's ids, and a member
// sends nothing to members that it does not list. Without help both sides would continue alone
// forever. Of each pair of running members that do not both list each other, one must end its
// incarnation:
//
//	both list each other ◀───────────────────────────────────────────────┐
//	      │ one drops the other                                  listed, with its new id
//	      ▼                                                               │
//	    lost ──hello, answered──▶ conflict ──patience──▶ asking ──permit──▶ steps down
//	      ▲                          │  ▲                   │
//	      └────────── silence ───────┘  └─── view changes ──┘
//
// In detail:
//
//  1. Lost addresses. Hellos are sent to the addresses of members that were once listed, and of
//     those named by members in conflict: every 2 seconds for 2 minutes, then less and less often,
//     down to once a minute. A member sends at most ten a second on average. An address is
//     forgotten when it is listed again, after a day, or when its member has left gracefully.
//  2. Evidence. A hello that names our incarnation, from a running member that does not list us or
//     that we do not list, puts the two members in conflict. Evidence is certain if one has dropped
//     the other. Otherwise there may be a join in progress, and the patience is ten times as long.
//     If neither has ever listed the other, no id is banned: the two are reported (Split), but
//     neither steps down.
//  3. Order. Members in conflict compare their fragments. The fragment with a holder of the arbiter
//     lease comes first (SetArbiter), then the one with more members that list each other, then a
//     member that is not disowned by most of its view, then the fragment with the older oldest
//     member, then the older member, then the id. When evidence is certain, or has lasted for the
//     patience, a member asks its whole view whether it is still listed there, and from then on
//     counts only those that say so.
//  4. Permit. When the evidence and its own view have lasted for the patience, a member requests a
//     permit from the first of the members in conflict with it, if that one is before it. The giver
//     of a permit must be before the asker according to its own data too, have a settled view, not
//     be leaving, and not have requested a permit itself. It waits for at most four members at
//     once, and not for more than its fragment has; for a quarter of a large fragment. While it
//     waits, it does not step down. A permit ends when another member is listed at the asker's
//     address, when the asker declines it, and after 30 seconds.
//  5. Stepping down. The incarnation ends with ErrSteppedDown, or with ErrExpelled if most of the
//     members that it lists do not list it. In the latter case it needs no patience, but still a
//     permit.
//
// # Guarantees
//
// Views arrive in order, and the latest is always available. Within one view all answers are
// consistent. Between members nothing is guaranteed: under a partition two members may each be the
// oldest of their views. Membership is a hint for liveness; anything that must not happen twice
// needs a lease.
//
// Members never all step down at once: the last one that did had a permit of a member that had not.
// No member steps down in a network that is still broken: the permit answers a request of the last
// 5 seconds. Both hold whatever is lost, late or stale, and whatever crashes, except if a member's
// own provider drops it: that incarnation ends at once (ErrDropped).
//
// After the last fault all members list each other again. The time this takes depends on patience,
// provider and number of fragments. With a patience of 2 seconds and rounds of half a second it is
// 4 to 6 seconds for one member that was cut off, and at most 20 for fragments of five members. If
// the patience is at least two rounds of the provider, one split ends no more incarnations than
// there are members outside the largest fragment; in one of 10,000 simulated splits, into 19
// fragments, one more ended. It ends more if views change meanwhile; package node counts
// incarnations, and Tune increases the patience with them.
//
// # Cost
//
// In normal operation each pair exchanges two hellos every 7 seconds. In a cluster of more than ten
// members the interval is 0.7 seconds times the number of members, so that a member sends three
// hellos every two seconds, of about 90 bytes each, whatever the size of the cluster. A new member
// exchanges a few hellos with each member. After a crash each of the others sends a hello to the
// address every two seconds, for two minutes.
//
// # Limits
//
// A hello contains what its sender claims; package node ensures that no sender impersonates
// another. TLS or a secret keep strangers out. Without them, a stranger that listens at its own
// address can send hellos, since only the name of the cluster is checked. Its effects are bounded:
// 8 answers a second to addresses of its choice, 64 members in conflict, a permit for a quarter of
// the time. It cannot make a member step down: the claims of a process count only for the report of
// a split unless it is at an address that is or was listed here, and shows that it is the process
// that was listed there, or unless a member that has shown this names the address. For this, each
// process gives each member that it lists a pledge, the hash of a proof. Two clusters with one name
// must not reach each other.
//
// A cluster that loses more than 256 members at once sends hellos to the last 256. Members of
// versions before the permits never step down, and are expelled as before; a mixed cluster heals
// once all of them have been replaced.
//
// # Order of use
//
//  1. Attach the service before the member starts, so that no event is missed; call Tune if needed.
//  2. Register with WhenUp what has to be spawned. Processes spawned earlier would have an address
//     that no other member can reply to.
//  3. Start the member. See package node.
//
// The protocol is the pure state machine in core.go and core_*.go; actor.go translates between it
// and messages. The state that has rules of its own is in parts that do not know each other:
// identity (which listed member is this process), roster (members listed now), lostAddresses,
// conflicts, permits and strangerRate. What joins them is a method of core.
package membership
