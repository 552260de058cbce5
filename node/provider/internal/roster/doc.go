// Package roster is shared by the cluster providers below node/provider: a Provider keeps one
// member listed in a Directory, and reports the other members to Proto.Actor.
//
// When a member leaves a list, every member that sees the list bans its id permanently. A provider
// must therefore never report a member as gone because of a fault of the provider. It follows these
// rules, which package testkit/clustertest checks:
//
//   - While the directory does not answer, the last list remains in effect.
//   - When a session with the directory was lost and another one begins, members that are missing
//     stay listed for Config.Grace: the same fault may have ended their sessions.
//   - Two entries at one address are two incarnations of one member; the later one counts.
//   - The first report contains the member itself, and StartMember waits for it.
//   - Nothing is reported after Shutdown, and nothing is running when it returns.
package roster
