// Package leasestore is the contract between sessions of package coordination and the stores that
// keep their leases. Programs need it only to write a store of their own; they pass stores to
// coordination.Open and do not call them.
//
// A store implements Store: two methods over a database with a compare-and-set. It may have more
// abilities, which sessions find by assertion: Watcher, SessionKeeper, Remover, TokenGiver,
// Documents and Batcher. Package testkit/leasetest checks a store and names each rule that it
// breaks. testkit/leasetest/ownstore_test.go is a complete store, and docs/stores.md the guide.
package leasestore
