// Package node runs one member of a cluster from start to stop, and keeps it in the cluster.
//
//	func main() {
//		node.Main(node.RunConfig{
//			Cluster:  "shop",
//			Remote:   node.Config{Host: "10.0.0.1", Port: 7000, PlaintextUnsafe: true},
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
//  5. Keep the port away from strangers. Without TLS anybody who reaches it can send any message to any
//     actor; the guard keeps them from crashing the process and stopping actors, no more. So
//     Remote refuses to listen beyond loopback unless Config.PlaintextUnsafe says so.
//
// # What the guard does
//
// Proto.Actor's remoting, as it comes, can be crashed by one message of anybody who reaches its port, loses whole
// batches above 4 MiB, does not notice a peer that hangs, and panics where it should return an error.
//
// Of every batch of messages that arrives, indices and serialiser are checked before Proto.Actor uses them;
// a batch that is wrong ends its stream with InvalidArgument. Single messages are taken out of a batch,
// counted (Refused) and logged, if their type is not known here, as in a rolling upgrade, or if
// they would stop, restart or confuse an actor. Unary calls are not implemented upstream and are
// refused. What panics all the same ends its stream, not the process.
package node
