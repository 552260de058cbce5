// Package clustertest checks Concord's requirements for a cluster provider of Proto.Actor. Members
// are real processes that run the test's own program.
//
//	func provide(m clustertest.Member) (cluster.ClusterProvider, error) {
//		return etcd.New(etcd.Config{Client: clientv3.Config{Endpoints: endpoints()}})()
//	}
//
//	func TestMain(m *testing.M) {
//		clustertest.Main(provide)
//		os.Exit(m.Run())
//	}
//
//	func TestProvider(t *testing.T) { clustertest.Run(t, clustertest.Config{}) }
//
// # Rules
//
// Every failure message begins with the broken rule.
//
//   - P1: a started member lists itself.
//   - P2: members list each other, with the addresses and ids that each has for itself.
//   - P3: the kinds of a member, from which Concord derives its roles, reach all others.
//   - P4: each incarnation of a member has a new id, even at the same address: Proto.Actor
//     permanently bans an id that has left a list.
//   - P5: a killed process is dropped.
//   - P6: a member that was shut down is dropped.
//   - P7: a process restarted at the address of a dead one is listed by members that noticed the
//     death, and also by those that had no time to notice it.
//   - P8: another incarnation in the same process, with a new provider, is listed again.
//   - P9: members that are otherwise undisturbed keep each other while the provider's server is
//     down, for Server.Outage, and for KeptFor after it has returned. Others can join afterwards.
//   - P10: a port in use is an error at start that names the port. The same process can start when
//     the port is free.
//   - P11: an incarnation leaves no goroutine and no open file behind.
//   - P12: clusters with different names do not see each other, even if one name is a prefix of the
//     other.
//   - P13: a start and a stop without a fault log nothing at the level Error.
//   - P14: a start without the provider's server fails with an error that names the server.
//   - P15: a test binary built with -race reports no data race in a member, except those within
//     Proto.Actor and gRPC. All checks look for races.
//   - P16: members that are all stopped at the same time, like those of a suspended machine, keep
//     each other.
//   - P17: members keep each other, and soon list others, when the connections of one of them to
//     the server fall silent: they stay open, but nothing comes back.
//
// P9, P14 and P17 apply to providers with a server that the test can stop; see Config.Server.
//
// docs/providers.md has the results for each provider.
package clustertest
