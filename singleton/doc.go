// Package singleton runs one instance of an actor in the whole cluster, under a lease, and routes
// messages to it from every member.
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
//	ticket, err := singleton.As[*Ticket](jobs.Ask(ctx, request))
//
// # How it works
//
// Every member runs a manager. The oldest member with the role that can host is elected: it
// acquires the lease, and only then makes the instance, its child. When another member should host,
// or when it leaves or is removed, the host stops the instance, waits for its termination, releases
// the lease, waits for the confirmation, and notifies the next host, which acquires without delay.
//
//	Younger ─elected──▶ AcquiringLease ──held──▶ Active ─not elected, closed, lost──▶ Stopping
//	   ▲                                          │  ▲                                    │
//	   │                               stopped by │  │ back-off                   terminated
//	   │                                itself    ▼  │ over                               ▼
//	   │                                         BackOff ─not elected, closed, lost▶ Releasing
//	   └──────────────────────────────────────────────────────────release has ended───────┘
//
// A member that cannot host declines: it announces this to the others, which then elect the next
// oldest. There are four reasons to decline:
//
//   - Instances fail there: Config.Tries in a row have panicked or stopped by themselves.
//   - Its store does not answer: its lease has expired for that reason, or it has tried to acquire
//     for Config.StoreTimeout.
//   - It has lost the lease, and a second later, or half of Drain, its instance is still in Receive.
//   - The node does not allow it: a node guard was lost, or the member is on a side of a partition
//     that has no majority. Then an instance there stops within Drain: it has half of Drain, at most a
//     second, to handle the messages in its mailbox.
//
// Every member announces each second that its managers run, and which of them decline, in one
// message to each other member for all its singletons. An announcement is valid for ten seconds.
// Only a member with a valid announcement is elected, or one that was listed less than ten seconds
// ago, and an instance moves only to a member that has announced that it can host. So in a rolling
// update that adds or removes a singleton, the members that have it host it, whatever the others
// are.
//
// A member that has just started may host as soon as the node allows it and its store has answered.
// Any other member that declines may host again when its store has answered and either no other
// member can host, or nobody holds the lease, or ten seconds have passed, doubled each time up to
// five minutes: a store that comes and goes does not move the instance back and forth. The last
// member that may host declines neither for its store nor for failing instances, so there is always
// one that tries. A member where instances failed does not take the instance back from another
// member unless they fail there too. Then those members take turns, ten seconds or more apart,
// doubled each time up to five minutes.
//
// A member that is elected may not acquire the lease all the same, because of a fault or because it
// lies. So the next one reads the lease until it has seen the elected member hold it. If the lease
// stays free for Config.StoreTimeout and five seconds, or for three times as long nothing is seen,
// it tries itself, and does not count on the elected member for ten seconds, doubled each time up
// to five minutes.
//
// A member that has just started does not host at once; see Config.MinMembers and Config.Settle.
//
// # Preferred hosts
//
// With Config.PreferNewest and Config.PreferRole members of the newest application version come
// first, then those with a role, then the oldest. Such a preference moves the instance: the member
// that comes first claims it when it is ready to host, and the host hands over. A member that
// should host by age waits two seconds for that claim before it acquires the lease. So each change
// of the members moves the instance once at most, a cold start makes it once, and no member without
// a running manager is chosen. The member repeats its claim each second. A claim is valid for ten
// seconds, so a crashed or frozen member loses its preference by then. A member that declines does
// not claim, and the rules above decide when it does so again.
//
// Each member follows its own Config. When they differ, during the roll-out of a new Config for
// example, several members may claim the instance. The oldest of them hosts. The lease is needed as
// always, and a preference never decides which of two members has it.
//
// An instance that panics is restarted under the same tenure after Config.MinBackoff, doubled each
// time up to MaxBackoff. Its mailbox is kept, except for the message that caused the panic. An
// instance that stops by itself is made again after the same time; a panic of produce counts as
// such a stop. After Config.Tries failures in a row the member declines, as above, and the contents
// of the mailbox are lost. An instance gets no message before it has handled Started: messages that
// arrive before then stay with the manager, which passes them on if the instance moves.
//
// Every member also runs a proxy, whose PID is Singleton.PID. The proxy asks the managers where the
// instance is and keeps messages until a manager reports that it hosts. Then it sends them to the
// instance, with sender and header. The announcements show that the instance is still there. If two
// of them are missing, the proxy asks again, every second.
//
// # State
//
// An instance that implements Warm leaves its state, a protobuf message of at most 255 KiB,
// to the next instance in a planned move. The member that stops the instance sends the state to the
// next host, and releases the lease when the next host has it, or after a second. The next instance
// gets the state before Started, with the token of the giver, and only if no tenure was in between.
// The state is lost in a crash, a loss and every other unplanned end: it saves the next instance
// work, but replaces no store.
//
// # Duties of the caller
//
//  1. Call New with the same Config on every member that may host, before the member starts, and
//     NewProxy at others that send. If Role or LeaseName differ from those of an older member, this
//     member does not host, and the health of both is an error that says so. In the next
//     incarnation of a member, under node.Run, call New again: it returns the same Singleton.
//  2. Send protobuf messages to the PID, and reply with them: remoting drops others with only a
//     line in the log.
//  3. Put the token of the Tenure into every effect outside the instance, and have the target
//     reject lower ones; or at least call Tenure.Check before each.
//  4. Do not block in Receive for longer than the Drain of the session's configuration.
//  5. Close the session after the singleton. node.Shutdown closes the singleton; without it, call
//     Close.
//
// # What is guaranteed
//
// At most one instance lives at any time, if clocks run at the rates promised to the lease and each
// Receive of the instance returns within Drain. An instance is made only while Tenure.Check is nil,
// after the one before has terminated. Its tokens never decrease.
//
//   - Pause of the host (garbage collection, SIGSTOP, a suspended virtual machine): when it wakes,
//     the instance may continue with the message it was handling although there is another instance
//     already. Check reports this at once, and the token protects; the manager first stops the
//     instance.
//   - Receive that does not return: an instance cannot be stopped in the middle of Receive. In a
//     planned move the member keeps the lease until Receive has returned or, if its session is
//     closed first, until the lease has expired. A member that stops with a deadline closes the
//     session at the deadline. After a loss the member passes messages on, and declines until
//     Receive has returned. Another member has an instance when the lease has expired; then only
//     the token protects.
//   - Partition: under node.Run the side with a majority of the members hosts, and the instance on
//     another side stops and releases the lease; see docs/operations.md. Otherwise the side with
//     the lease hosts. The other side keeps messages up to Buffer. A short partition, in which no
//     member was dropped, changes nothing. After a longer one Proto.Actor does not take dropped
//     members back: the members of the side that steps down join again as new members, under
//     node.Run automatically. They are the youngest, so the instance stays with the other side, or
//     moves there: a host that steps down stops its instance and releases the lease, as after a
//     removal.
//   - Crash of the host: the next oldest has an instance once the provider has dropped the host and
//     the lease has expired, which is its TTL after the next oldest last saw a renewal. The two
//     members next in age observe the lease, so the TTL runs while the crash is being noticed. A
//     member that has not observed it needs at most TTL·(1+clock rate error), margin and a round
//     trip after the host was dropped.
//   - Restart of the host: a new process is a new, younger member, even at the same address.
//   - Removal of the host from its cluster: it stops the instance, which has half of Drain, at most
//     a second, to handle the messages in its mailbox. It releases the lease, waits for no other
//     member, and never hosts again in this incarnation. Kept messages are refused with ErrClosed.
//     In its next incarnation, if there is one, Ask and PID of the same Singleton work again, and
//     it may host again, as the youngest.
//   - Store unavailable for the host only: the instance stops Drain before its validity ends, the
//     member declines, and the next oldest has an instance when the lease has expired, or at once
//     if the store was available again before and the lease was released. Unavailable for a member
//     that does not host: nothing happens. Unavailable for all: the instance stops, and one member
//     keeps trying. When the store is available again for all, the last host releases, and there is
//     an instance a few seconds later. If it is available again for one member only, that member
//     must wait until the lease has expired: its TTL after the member could first read the record,
//     preceded by ten seconds if it declined.
//   - Clients of a lost host: an Ask that was sent there returns ErrUnknown when the host is
//     dropped or, if the host has lost its lease, when the next host is found.
//
// # Messages
//
// A message is delivered at most once. Of one sender's messages, sent through one proxy, a later
// one never overtakes an earlier one as long as hosts hand over. When a host is lost, messages on
// their way to it are lost. In a planned move no message is lost: a poisoned instance first handles
// the messages in its mailbox, and later messages are passed on to the next instance. With
// Config.StopMessage, or if an instance stops itself, messages behind that message in the mailbox
// are lost. They are also lost when the lease is lost, or when HandOver has passed.
//
// While there is no instance, Buffer messages wait in each proxy, and as many in a manager. A proxy
// accepts them as soon as New has returned, before the member is up. Messages beyond that are
// refused at once: they go to the dead letters of that member, Stats counts them, and Ask returns
// an error. If there is no other member to hand over to, Close refuses the waiting messages.
//
// docs/singleton.md is the guide. Program examples/quickstart has a singleton that numbers orders.
package singleton
