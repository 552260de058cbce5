// Package realtest holds no code, only tests: sharded entities on real processes, which talk over TCP, leave in order, and
// are killed with SIGKILL. Their leases are in a store of files, and every entity writes what it handles into a file of
// its own, with the token of its lease.
package realtest
