// Package datatest contains only tests: scenarios of replicated data on real processes. The
// processes communicate over TCP, are killed with SIGKILL, one or all at once, and restarted, and
// are separated by lab/netem.
//
// The test is the driver. It starts the members by executing the test binary again, acts as their
// provider, and sends each its commands through a pipe. Where netem cannot run because the test is
// not root, the processes share the loopback interface, and the scenarios run without partitions
// and link faults, and log that. With CI=true they fail instead.
package datatest
