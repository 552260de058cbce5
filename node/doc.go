// Package node runs one member of a cluster from start to stop, and keeps it in the cluster.
//
//	func main() {
//		node.Main(node.RunConfig{
//			Cluster:  "shop",
//			Remote:   node.Config{Host: "10.0.0.1", Port: 7000, TLS: node.TLSFiles("me.pem", "me-key.pem", "ca.pem")},
//			Provider: automanaged.New(automanaged.Config{Hosts: []string{"10.0.0.1:6330", "10.0.0.2:6330"}}),
//			Store:    func() (coordination.Store, error) { return file.Open("/var/lib/shop") },
//		}, func(n *node.Node) error {
//			dd, err := distributeddata.New(n.System, distributeddata.Config{MinMembers: 3})
//			if err != nil {
//				return err
//			}
//			n.Go(func(ctx context.Context) error { return serve(ctx, dd) })
//			return nil
//		})
//	}
//
// # Lives
//
// Proto.Actor never takes a member back that it dropped from its list, be it for a pause of seconds. What was
// dropped works on by itself, for ever: two clusters of one name, and nobody is told. Run mends that. Members ask
// the addresses that they have lost; when two fragments of a cluster hear of each other again, the members of
// one of them give way, one after the other and only with a permit of the other fragment, and begin another life:
//
//	starting ──ready──▶ up ──dropped, expelled, gives way──▶ stopping ──▶ starting (next life)
//	   │                 └───────signal, context, failure of work────────▶ stopping ──▶ Run returns
//	   └─first life fails─▶ Run returns;  a later one: again, with back-off
//
// A life has an actor system and a member id of its own; the process, its address and its lease session go on. See
// Run, docs/operations.md, and package membership for the rule that decides which member gives way.
//
// # Without Run
//
// The parts can be used by hand. What is split off then stays so until the process is started again:
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
//	case <-node.Removed(system): // see node.Why; leave, and let the process be started again
//	}
//
// # Duties of the caller
//
//  1. Run one member per process. Two remoting servers in one process race inside Proto.Actor.
//  2. Use Run or Remote on every member: limits hold only if both ends have them.
//  3. Without Run, end the process when Removed is closed. Proto.Actor never lets the same member id back in.
//  4. Let go of a Node when its Context ends. Handles of components may be kept, PIDs of its system may not.
//  5. Beyond loopback, set Config.TLS or Config.SecretFile on every member; Remote insists on it unless
//     Config.PlaintextUnsafe is set. See the section about strangers for what either is worth.
//
// # What the guard does
//
// Proto.Actor's remoting, as it comes, can be crashed by one message of anybody who reaches its port, believes
// every address in a message, passes on what is for others, loses whole batches above 4 MiB, does not notice a peer
// that hangs, and panics where it should return an error. The guard reads every message as bytes before Proto.Actor
// does. What it refuses it counts (Refusals) and logs, at the 1st, 2nd, 4th, 8th, … time:
//
//   - A stream must begin within five seconds with the address of its peer, and prove it. Messages that
//     speak for another address than the peer's end nowhere: hellos and other messages of Concord in the
//     name of another member, the termination of an actor that is not at the peer, watches for others, and
//     events that Proto.Actor publishes to itself.
//   - A message for another address is not passed on, and one for an actor outside of Config.Public not
//     delivered. A sender may be at the peer, or at a member, or be one of a few others per connection.
//   - Indices, serialiser and types are checked before they are used, system messages that would stop or
//     restart an actor are taken out, and a message of an unknown type, as in a rolling upgrade, is left out alone.
//   - Of a batch, the envelopes, types, targets, senders and headers are counted before it is decoded, and of a
//     message above 32 KiB its elements, so that neither takes more than 16 times its size and 1 MiB in memory. A peer has 10,000 watches at most. Of connections on
//     which nobody has proven anything the oldest is closed when there are more than 256.
//   - A wrong batch ends its stream with InvalidArgument, an unproven one with Unauthenticated. Unary calls,
//     which Proto.Actor does not implement, are refused. What panics all the same ends its stream, not the process.
//
// # Strangers
//
// How a peer proves its address decides who is kept out:
//
//   - TLS: everybody without a certificate of your authority. Nobody reads along.
//   - SecretFile: everybody without the secret of the cluster. Each message is authenticated, numbered and bound
//     to its connection, so that none can be forged, changed, replayed, or moved to another cluster. It can be read.
//     All who know the secret can pass for any member.
//   - Neither: the member calls the address back, and asks whether the stream comes from there. That keeps out
//     those who cannot read the traffic between members. A stranger that listens at an address of its own can
//     say who it is; it is no member until the provider lists it, and messages of Concord are taken from members
//     only, but those of users are delivered.
//
// Members of versions before the guard are believed, without TLS and secret, if they cannot answer the call.
package node
