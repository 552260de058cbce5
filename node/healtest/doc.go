// Package healtest holds no code, only tests: every fault that a cluster must heal from by itself, on real
// processes that run under node.Run.
//
// The driver, which is the test, starts the members by executing the test binary again, each in a network namespace
// of its own (testkit/netem). The members add to replicated data all the time, also while they are alone, and ask a
// singleton that runs under a lease. The driver cuts links, freezes and kills processes, or takes the
// provider's server away, ends the fault, and starts no process again but those it has killed. Then it waits for one
// view, equal data and a singleton that answers everywhere, and checks that nothing was lost and that there were
// never two instances.
//
// Some cases have leases beside the singleton's: the host of a cluster with guards loses the lease store, and one with
// an arbiter is cut off with a minority; where the singleton lived meanwhile is read from its records.
//
// Without flags one run of a few cases is made. "make heal" runs all cases and prints how long each took to heal
// beside its goal. Where netem cannot run, for want of root, the tests are skipped and say so; with CI=true
// they fail instead. Cases with etcd need the path of its server in CONCORD_ETCD_BIN.
package healtest
