// Package node runs one member of a cluster from start to stop.
//
// Proto.Actor's remoting, as it comes, can be crashed by one message of anybody who reaches its port,
// loses whole batches above 4 MiB, does not notice a peer that hangs, and panics where it should return an
// error. This package is the configuration and the order of steps that close this:
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
//	case <-node.Removed(system): // leave, and let the process be started again
//	}
//
// # Duties of the caller
//
//  1. One member per process. Two remoting servers in one process race inside Proto.Actor.
//  2. Use Remote on every member: limits hold only if both ends have them.
//  3. When Removed is closed, end the process. Proto.Actor never lets the same member back in.
//  4. Keep the port away from strangers. Without TLS anybody who reaches it can send any message to any
//     actor; the guard keeps them from crashing the process and stopping actors, no more. So
//     Remote refuses to listen beyond loopback unless Config.PlaintextUnsafe says so.
//
// # What the guard does
//
// Of every batch of messages that arrives, indices and serialiser are checked before Proto.Actor uses them;
// a batch that is wrong ends its stream with InvalidArgument. Single messages are taken out of a batch,
// counted (Refused) and logged, if their type is not known here, as in a rolling upgrade, or if
// they would stop, restart or confuse an actor. Unary calls are not implemented upstream and are
// refused. What panics all the same ends its stream, not the process.
package node
