// Package roster is what the cluster providers below node/provider have in common: a Provider that
// keeps one member listed in a Directory, and reports to Proto.Actor who else is.
//
// Proto.Actor bans the id of a member that leaves a list, for good, at every member that saw the
// list. A provider must therefore not report a member as gone because of a fault of its own. The
// rules, which package testkit/clustertest checks:
//
//   - While the directory does not answer, the last list stands.
//   - When a session with the directory was lost and another one begins, members that are missing
//     stay listed for Config.Grace: they may have lost their sessions by the same fault.
//   - Two entries at one address are two lives of one member; the later one counts.
//   - The first report contains the member itself, and StartMember waits for it.
//   - Nothing is reported after Shutdown, and nothing runs any more when it returns.
package roster
