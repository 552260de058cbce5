// Package storetest checks that a store obeys the contract of distributeddata/store and its
// numbered rules. The test of a store is one call:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Disk {
//			dir := t.TempDir()
//			return storetest.Disk{Open: func() (store.Store, error) { return mystore.Open(dir) }}
//		})
//	}
//
// Every failure names the broken rule. Rules that require injected disk faults are skipped, with a
// message, if Disk does not provide them. The suite cannot detect whether the disk itself keeps the
// data it was told to flush.
//
// docs/durability.md compares the stores that pass it.
package storetest
