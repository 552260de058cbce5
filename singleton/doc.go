// Package singleton keeps one instance of an actor in the whole cluster, under a lease, and finds it from
// every member.
//
//	session, err := coordination.Open(store, coordination.Config{})
//	if err != nil {
//		return err
//	}
//	defer session.Close(context.Background()) // after the member has stopped
//
//	system := actor.NewActorSystem()
//	c := cluster.New(system, node.Cluster("shop", provider, rc, node.Roles("backend")))
//	jobs, err := singleton.New(system, session, singleton.Config{Name: "jobs", Role: "backend"},
//		func(t coordination.Tenure) actor.Actor { return &scheduler{tenure: t} })
//	if err != nil {
//		return err
//	}
//	if err := node.Start(ctx, c); err != nil {
//		return err
//	}
//	defer node.Shutdown(context.Background(), c) // hands over
//
//	system.Root.Send(jobs.PID(), request) // wherever the instance is
//	reply, err := jobs.Ask(ctx, request)
//
// # How it works
//
// Every member runs a manager. The oldest one with the role that can host acquires the lease, and only
// then makes the instance, its child. When another member should host, or it leaves or is removed, it
// stops the instance, waits until that has terminated, releases the lease, waits until that is confirmed,
// and tells the next host, which acquires without delay.
//
//	Younger ──oldest──▶ AcquiringLease ──held──▶ Active ──not oldest, closed, lost──▶ Stopping
//	   ▲                                          │  ▲                                    │
//	   │                               stopped by │  │ back-off                   terminated
//	   │                                itself    ▼  │ over                               ▼
//	   │                                         BackOff ─not oldest, closed, lost─▶ Releasing
//	   └──────────────────────────────────────────────────────────release has ended───────┘
//
// A member that cannot host says so to the others, which then elect the next oldest: it abstains. There
// are three reasons. Instances fail there: Config.Tries in a row have panicked or stopped by themselves.
// Its store does not answer: its lease has expired for that, or it has tried to acquire
// for Config.StoreTimeout. Or the node does not allow it: a node guard was lost, or another fragment of a
// split cluster has the arbiter lease; then an instance here ends within Drain: it has half of that, at
// most a second, to handle what it has. The word is repeated each second and believed for ten. The
// member takes part again when the store has answered and no other member can host, or nobody holds the
// lease, or else after ten seconds, doubled each time up to five minutes: an instance is not moved back
// and forth by a store that comes and goes. The last member that may host abstains neither for its
// store nor for instances that fail, so there is always one that tries. A member where instances failed
// does not take the instance back from another one unless they fail there too: then those members take
// turns, ten seconds or more apart, doubled each time up to five minutes.
//
// A member that has just come up does not host at once: see Config.MinMembers and Config.Settle.
//
// An instance that panics is restarted under the same tenure after Config.MinBackoff, doubled each time up
// to MaxBackoff; what is in its mailbox waits, except the message that it panicked on. One that stops by
// itself is made again after the same time. If produce panics, that counts as such a stop. After
// Config.Tries failures in a row the member steps aside, as above, and what is in the mailbox is lost. An
// instance gets no message before it has handled Started: what comes until then goes to the next host.
//
// Every member also runs a proxy: PID. It asks the managers where the instance is, keeps messages until
// one says that it is there, and then sends them to it, with sender and header. It asks every second, so
// that it finds the instance again also when a message of this protocol is lost.
//
// # State
//
// An instance that implements Warm leaves its state, a protobuf message of at most MaxState bytes, to the
// next one in a planned move: the member that stops it sends the state to the next host and, when that has
// it, or after a second, releases the lease. The next instance gets it before Started, with the token of
// the giver, and only if no tenure was in between. In a crash, a loss and every other unplanned end the
// state is lost: it saves the next instance work, and replaces no store.
//
// # Duties of the caller
//
//  1. Call New with the same Config on every member with the role before the member starts, and NewProxy
//     elsewhere. A member with the role that did not call New would be waited for.
//     Between the lives of a member, under node.Run, call New again: it returns the same Singleton.
//  2. Messages that may cross between members are protobuf messages. So are replies: remoting loses
//     others with no more than a line in the log.
//  3. Put the token of the Tenure into every effect outside the instance, and have the target refuse lower
//     ones; or at least call Tenure.Check before each.
//  4. Do not block in Receive for longer than the Drain of the session's configuration.
//  5. Close the session after the singleton. node.Shutdown, or Close, does the part of the singleton.
//
// # What is guaranteed
//
// At most one instance lives at any time if clocks run at rates as promised to the lease, and each Receive
// of the instance returns within Drain. An instance is made only while Tenure.Check is nil, after the one
// before has terminated. Its tokens never fall.
//
//   - Pause of the host (garbage collection, SIGSTOP, a suspended virtual machine): when it wakes, the
//     instance may go on with the message it was handling although another one lives by now. Check knows
//     at once, the token protects; the manager stops the instance as its first act.
//   - Receive that does not return: an instance cannot be taken away from its goroutine. In a planned move
//     the lease is kept until it has returned. After a loss another member may have an instance by
//     then; only the token protects.
//   - Partition: each side may think that its oldest member should host; the lease is had by one. The side
//     without it keeps messages up to Buffer. A short partition, in which no member was dropped, changes
//     nothing. After a longer one Proto.Actor does not take dropped members back: the side that gives way
//     restarts as new members, under node.Run without being asked. They are the youngest, so the instance
//     stays with the side that stays, or moves there: a host that gives way stops its instance and
//     releases the lease, as after a removal.
//   - Crash of the host: the next oldest has an instance once the provider has dropped the host and the
//     lease has become stale: its TTL after the next oldest first looked, so at most TTL·(1+clock rate
//     error), margin and a round trip after the host was dropped. Members do not look in advance.
//   - Restart of the host: a new process is a new, younger member, even at the same address.
//   - Removal of the host from its cluster: it stops the instance, which has half of Drain, at most a
//     second, to handle what it has, releases the lease, waits for nobody, and never hosts again in this
//     life. What it kept is
//     refused with ErrClosed. In its next life, if it has one, Ask and PID of the same Singleton work
//     again, and it may host again, as the youngest.
//   - Loss of the store, for the host alone: the instance stops Drain before its validity ends, the member
//     abstains, and the next oldest has an instance when the lease is stale, or at once if the store is
//     back before and the lease was released. Loss for a member that does not host: nothing happens.
//     Loss for all: the instance stops, and one member keeps trying. When the store is back for all, the
//     last host releases, and an instance is there a few seconds later. When it is back for one member
//     only, that one has to wait until the lease is stale, its TTL after it could read the record first,
//     and ten seconds before that if it abstained.
//   - Clients of a host that is gone: an Ask that was sent there returns ErrUnknown when the host is
//     dropped, or, if it has lost its lease, when the next one is found.
//
// # Messages
//
// A message is delivered at most once. Of one sender's messages, sent through one proxy, a later one never
// overtakes an earlier one as long as hosts hand over; when a host is lost, those on their way to it
// are lost. In a planned move nothing is lost: what the instance has not handled when it stops, if it
// is poisoned, it handles first; what comes later is passed on to the next one. With
// Config.StopMessage, or an instance that stops itself, what is in its mailbox behind that message is lost,
// as it is when the lease is lost, or when HandOver has passed.
//
// Where there is no instance, Buffer messages wait in each proxy, and as many in a manager. A proxy takes
// them as soon as New has returned, before the member is up. The newest that
// do not fit are refused, at once: they go to the dead letters of that member, are counted in Stats, and
// Ask tells. When there is no other member to hand over to, Close refuses what waits.
package singleton
