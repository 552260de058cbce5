// Package realtest contains only tests: sharded entities in real processes, which communicate over
// TCP, leave in order, and are killed with SIGKILL. Their leases are in a file store, and every
// entity writes the messages it handles to its own file, with the token of its lease.
package realtest
