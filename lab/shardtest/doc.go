// Package shardtest contains only tests: sharded entities in real processes, which communicate over
// TCP, leave in order, are killed with SIGKILL, stopped with SIGSTOP and cut off from each other.
// Their leases are in a file store, which has outages, and every entity writes the messages it
// handles to its own file, with the token of its lease.
package shardtest
