// Package automanaged is a cluster provider for a fixed list of hosts. It needs no server: each
// member answers HTTP requests about itself, and queries all hosts of the list.
//
//	provider := automanaged.New(automanaged.Config{
//		Port:  6330,
//		Hosts: []string{"10.0.0.5:6330", "10.0.0.6:6330", "10.0.0.7:6330"},
//	})
//
// Without TLS and secret it speaks the protocol of Proto.Actor's provider of the same name, so
// members with either of them see each other. Unlike that provider, it
//
//   - listens on the host that remoting listens on, not on all interfaces;
//   - reports at start that its port is in use;
//   - lists its own member at once, and queries the others without waiting for the slowest;
//   - drops a member that has neither answered nor asked for Config.DropAfter, rather than one that
//     missed a single request;
//   - logs when a host becomes silent and when it answers again, rather than every failed
//     request.
//
// # Guarantees
//
// A member is listed within Refresh of its start. A member whose process has died is dropped within
// Refresh, because its host refuses the connection. A member that is frozen or cut off is dropped
// after DropAfter. One whose answers come late, because it gets little processor time, is listed if
// they come within three times DropAfter, and stays so for as long while it asks. A member that
// gets its own turns late does not count that time as silence of the others. The members that
// dropped it ban its id: it can come back only with a new incarnation (node.Run) or a new process.
//
// # Duties
//
// With TLS or a secret (node.Config), members prove themselves on this port too: a host counts only
// if its certificate is valid for the address of the member that it names, or if it has the secret,
// and others get no answer. With neither, anyone who reaches the port learns the member's id,
// address and roles, and anyone who answers at a host of the list controls which member is listed
// there: keep the port inside a closed network, like the port of remoting.
//
// A host speaks only for a member on it: Hosts must name the hosts under which the members can be
// reached. It cannot take the address of a member of another host.
//
// docs/providers.md compares the providers. Program examples/hello uses this one.
package automanaged
