// Package automanaged is a cluster provider for a fixed list of hosts. It needs no server: each member
// answers HTTP requests about itself, and asks all hosts of the list.
//
//	provider := automanaged.New(automanaged.Config{
//		Port:  6330,
//		Hosts: []string{"10.0.0.5:6330", "10.0.0.6:6330", "10.0.0.7:6330"},
//	})
//
// It speaks the protocol of Proto.Actor's provider of the same name, so members with either of them
// see each other. It differs in that it
//
//   - listens on the host that remoting listens on, not on all interfaces;
//   - reports at start that its port is taken;
//   - lists its own member at once, and asks the others without waiting for the slowest;
//   - drops a member that has not answered for Config.DropAfter, not one that missed one request;
//   - logs when a host becomes silent and when it answers again, not each time.
//
// # Guarantees
//
// A member is listed within Refresh of its start. One whose process has died is dropped within Refresh:
// its host refuses the connection. One that is frozen or cut off is dropped after DropAfter, and its
// id is banned by those that dropped it: only a new life (node.Run) or process comes back.
//
// # Duties
//
// The protocol has no authentication. Whoever reaches the port learns the member's id, address and
// roles; whoever answers at a host of the list decides who is listed there. Keep the port inside a
// closed network, as that of remoting without TLS.
package automanaged
