// Package realtest holds no code, only tests: scenarios of replicated data on real processes, which talk over
// TCP, are killed with SIGKILL, one or all at once, and started again, and are parted by testkit/netem.
//
// A driver, which is the test, starts the members by executing the test binary again, plays their provider,
// and gives each its commands through a pipe. Where netem cannot run, for want of root, the processes share
// the loopback interface and the scenarios go without partitions and faults of links, and log that; with
// CI=true they fail instead.
package realtest
