// Package node runs one member of a cluster from start to stop, and keeps it in the cluster.
//
//	func main() {
//		node.Main(node.RunConfig{
//			Cluster:    "shop",
//			MinMembers: 2, // of three
//			Remote:     node.Config{Host: "10.0.0.1", Port: 7000, TLS: node.TLSFiles("me.pem", "me-key.pem", "ca.pem")},
//			Provider:   automanaged.New(automanaged.Config{Hosts: []string{"10.0.0.1:6330", "10.0.0.2:6330"}}),
//			Store:      func() (coordination.Store, error) { return file.Open("/var/lib/shop") },
//		}, func(n *node.Node) error {
//			dd, err := distributeddata.New(n.System, distributeddata.Config{})
//			if err != nil {
//				return err
//			}
//			n.Go(func(ctx context.Context) error { return serve(ctx, dd) })
//			return nil
//		})
//	}
//
// # Incarnations
//
// Proto.Actor never readmits a member that it has dropped from its list, even if the cause was a
// pause of a few seconds. A dropped member keeps working on its own forever: there are then two
// clusters of the same name, and nothing reports it. Run repairs this. Members query the addresses
// that they have lost. When two fragments of a cluster hear of each other again, the members of one
// fragment step down, a few at a time and only with the permission of the other fragment, and begin
// another incarnation:
//
//	starting ──ready──▶ up ──dropped, expelled, steps down──▶ stopping ──▶ starting (next)
//	   │                 └───────signal, context, failure of work─────────▶ stopping ──▶ Run returns
//	   └─the first one fails─▶ Run returns;  a later one: again, with back-off
//
// Each incarnation has its own actor system and member id; the process, its address and its lease
// session stay the same. See Run, docs/operations.md, and package membership for the rule that
// decides which member steps down.
//
// # Without Run
//
// The parts can also be used without Run. A member that is split off then stays split off until its
// process is restarted:
//
//	rc, err := node.Remote(node.Config{Host: "127.0.0.1", Port: 9000})
//	if err != nil {
//		return err
//	}
//	system := actor.NewActorSystem()
//	c := cluster.New(system, node.Cluster("shop", provider, rc, node.Roles("backend")))
//	// Make the components here, before the start.
//	if err := node.Start(ctx, c); err != nil {
//		return err
//	}
//	defer node.Shutdown(context.Background(), c)
//	select {
//	case <-ctx.Done():
//	case <-node.Removed(system): // see node.RemovalCause; shut down and restart the process
//	}
//
// # Duties of the caller
//
//  1. Run one member per process. Two remoting servers in one process race inside Proto.Actor, and
//     the guard knows one view. Run refuses a second one.
//  2. Use Run or Remote on every member: limits hold only if both ends enforce them.
//  3. Without Run, exit the process when Removed is closed. Proto.Actor never readmits the same
//     member id.
//  4. Drop all references to a Node when its Context ends. Handles of components may be kept; PIDs
//     of its system may not.
//  5. Beyond loopback, set Config.TLS or Config.SecretFile on every member; Remote requires it
//     unless Config.PlaintextUnsafe is set. The section Strangers says what each of them protects
//     against.
//
// # What the guard does
//
// Proto.Actor's remoting on its own has these weaknesses: one message from anyone who reaches its
// port can crash it; it believes every address in a message, relays messages addressed to other
// members, loses whole batches above 4 MiB, does not detect a peer that hangs, and panics where it
// should return an error. The guard inspects the bytes of every message before Proto.Actor does. It
// counts what it rejects (Refusals) and logs the 1st, 2nd, 4th, 8th, … rejection:
//
//   - A stream must begin within five seconds with the address of its peer, and prove it. Messages
//     that speak for another address than the peer's are dropped: hellos and other messages of
//     Concord in the name of another member, the termination of an actor that is not at the peer,
//     watches on behalf of others, answers of a member that was not asked, and messages that
//     members do not send to their receiver.
//   - Of a process that is not a member only introductions are delivered, and messages for the
//     actors in Config.Public. Members list a new member at different times, so its first messages
//     wait for up to 1.5 seconds for that.
//   - A message for another address is not relayed. A sender must be at the peer or at a member;
//     each connection may name a few other sender addresses.
//   - Indices, serializer and types are checked before they are used. System messages that would
//     stop or restart an actor are removed. If a batch has a message of an unknown type, as in a
//     rolling upgrade, only that message is dropped.
//   - The envelopes, types, targets, senders and headers of a batch are counted before it is
//     decoded, and so are the elements of a message above 32 KiB, so that decoding takes at most 16
//     times its size plus 1 MiB of memory, and time in proportion. On a connection whose peer is
//     not a member at most 1 MiB may wait for the end of a message, and on all of them 64 MiB; it
//     is closed if no stream begins in time. Headers have at most 8
//     KiB. A member has at most 10,000 watches, and so have all
//     other processes together. Of more than 256 connections that are unproven, 1024 of processes
//     that are no members, or 16 of one peer, the oldest is closed.
//   - An invalid batch ends its stream with InvalidArgument, an unproven peer with Unauthenticated.
//     Unary calls, which Proto.Actor does not implement, are rejected. A panic during handling ends
//     the stream, not the process.
//
// # Strangers
//
// How a peer proves its address decides which strangers are kept out:
//
//   - TLS: everyone without a certificate of your authority. The traffic is encrypted.
//   - SecretFile: everyone without the secret of the cluster. Each message is authenticated,
//     numbered and bound to its connection, so it cannot be forged, changed, replayed or moved to
//     another cluster. It can be read. Anyone who knows the secret can impersonate any member.
//   - Neither: the member calls the address back and asks whether the stream comes from there. That
//     keeps out strangers that cannot read the traffic between members. A stranger that listens on
//     an address of its own can prove that address. It is not a member until the provider lists it,
//     and reaches only the actors in Config.Public.
//
// docs/first-cluster.md is the guide, docs/operations.md describes faults, alarms and updates, and
// docs/security.md TLS and secrets. Program examples/hello is the smallest member.
package node
