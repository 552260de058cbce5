// Package clustertest checks what Concord needs of a cluster provider of Proto.Actor. Members are real
// processes: the test's own program, started again.
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
// Every failure begins with the rule that was broken.
//
//   - P1: a member that has started lists itself.
//   - P2: members list each other, by the addresses and under the ids that each has for itself.
//   - P3: the kinds of a member, which Concord's roles are made of, arrive at all others.
//   - P4: each life of a member has another id, also at the same address: Proto.Actor bans an id that has
//     left a list, for good.
//   - P5: a killed process is dropped.
//   - P6: a member that was shut down is dropped.
//   - P7: a process that is started again at the address of a dead one is listed by those that saw the
//     death, and also by those that had no time to see it.
//   - P8: another life in the same process, with a new provider, is listed again.
//   - P9: while the provider's server is down, for Server.Outage, and for KeptFor after it is back, members
//     that did nothing keep each other, and others can join afterwards.
//   - P10: a port that is taken is an error at start, with the port in its text. The same process can
//     start when the port is free.
//   - P11: a life leaves no goroutine and no open file behind.
//   - P12: clusters with different names do not see each other, also when one name begins with the other.
//   - P13: a start and a stop without a fault log nothing at the level Error.
//   - P14: a start without the provider's server fails with an error that names the server.
//   - P15: a test binary built with -race reports no data race in a member, but those that Proto.Actor and
//     gRPC have among themselves. It is looked for in all checks.
//   - P16: members that are all stopped at one time, as those of a suspended machine, keep each other.
//
// P9 and P14 are for providers that have a server which the test can stop; see Config.Server.
package clustertest
