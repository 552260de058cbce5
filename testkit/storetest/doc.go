// Package storetest holds a store to the contract of distributeddata/store, whose rules it numbers. A store's
// own test is one call:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Disk {
//			dir := t.TempDir()
//			return storetest.Disk{Open: func() (store.Store, error) { return mystore.Open(dir) }}
//		})
//	}
//
// Every failure names the rule that is broken. Rules that need a disk that can be told to fail are skipped,
// in so many words, where Disk gives no way to tell it. What the suite cannot see: whether the disk itself
// keeps what it was told to flush.
package storetest
