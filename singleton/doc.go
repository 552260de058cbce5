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
// Every member runs a manager. The oldest one with the role acquires the lease, and only then makes the
// instance, its child. When it is not the oldest any more, leaves, or is expelled, it stops the
// instance, waits until that has terminated, releases the lease, waits until that is confirmed, and tells
// the next oldest, which acquires without delay.
//
//	Younger ──oldest──▶ AcquiringLease ──held──▶ Active ──not oldest, closed, lost──▶ Stopping
//	   ▲                                          │  ▲                                    │
//	   │                               stopped by │  │ back-off                   terminated
//	   │                                itself    ▼  │ over                               ▼
//	   │                                         BackOff ─not oldest, closed, lost─▶ Releasing
//	   └──────────────────────────────────────────────────────────release has ended───────┘
//
// An instance that panics is restarted by Proto.Actor as usual, ten times in ten seconds. One that is
// stopped, by that or by itself, is made again under the same tenure after 100ms, doubled each time up
// to 10s. If produce panics, that counts as such a stop.
//
// Every member also runs a proxy: PID. It asks the managers where the instance is, keeps messages until
// one says that it is there, and then sends them to it, with sender and header. It asks every second, so
// that it finds the instance again also when a message of this protocol is lost.
//
// # Duties of the caller
//
//  1. Call New with the same Config on every member with the role before the member starts, and NewProxy
//     elsewhere. A member with the role that did not call New would be waited for.
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
//     without it keeps messages up to Buffer. When the sides meet, the oldest of all takes over.
//   - Crash of the host: the next oldest has an instance once the provider has dropped the host and the
//     lease has become stale: its TTL after the next oldest first looked, so at most TTL·(1+clock rate
//     error), margin and a round trip after the host was dropped. Members do not look in advance.
//   - Restart of the host: a new process is a new, younger member, even at the same address.
//   - Removal of the host from its cluster: it stops the instance, releases the lease and never hosts
//     again; its own sends are refused with ErrClosed.
//   - Loss of the store: the instance stops Drain before its validity ends. The member keeps trying, and
//     gets it back when the store is back. No other member steps in for one that is the oldest and alone
//     cut off from the store.
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
// Where there is no instance, Buffer messages wait in each proxy, and as many in a manager. The newest that
// do not fit are refused, at once: they go to the dead letters of that member, are counted in Stats, and
// Ask tells. When there is no other member to hand over to, Close refuses what waits.
package singleton
