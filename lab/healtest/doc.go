// Package healtest contains only tests: every fault from which a cluster must heal by itself, on
// real processes that run under node.Run.
//
// The driver, which is the test, starts the members by executing the test binary again, each in its
// own network namespace (lab/netem). The members continuously add to replicated data, also
// while they are alone, and send requests to a singleton that runs under a lease. The driver cuts
// links, freezes and kills processes, or stops the provider's server; then it ends the fault, and
// restarts only the processes that it has killed. It waits for one view, equal data and a singleton
// that answers everywhere, and checks that nothing was lost and that there were never two
// instances.
//
// In some cases the host of a cluster with guards loses the lease store, or the host is cut off
// with a minority. The records of the singleton show where it lived meanwhile.
//
// In the cases named chaos, faults of all kinds overlap at random on members with default settings.
// Accounts, which are entities and a singleton, keep their deposits in replicated data: each that
// was acknowledged must be there at the end, under a number of its own.
//
// TestOutage cuts off or kills members with default settings, in any second of their life, and
// measures how long clients have no answer from singletons and shards.
//
// Without flags, a few cases run once. "make heal" runs all cases and prints how long each took to
// heal next to its goal. Where netem cannot run because it needs root, the tests are skipped with a
// message; with CI=true they fail instead. Cases with etcd need the path of its server in
// CONCORD_ETCD_BIN.
package healtest
