// Package store is what a replicator needs to keep its rows on a disk: batches of puts and deletes that are
// there whole or not at all, and a stream of all rows at the next start.
//
// A row is a key and a value, both bytes to the store. Commit is the promise: once it has returned nil, the
// batch survives the end of the process at any moment, and a loss of power if the disk keeps what it was
// told to flush. Package testkit/storetest holds a store to every word of the contract:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Disk { … })
//	}
//
// Package distributeddata/badger is a store on real disks. The disks of package testkit's virtual clusters
// have one that fails as told.
//
// # What a store must do
//
// The rules have the numbers of the suite.
//
//   - S1. Load yields every row once, in ascending order of the keys' bytes. A new store has none.
//   - S2. The last write of a key wins: among batches in the order of their commits, and within one batch.
//   - S3. A delete removes the row; that there is none is no error. A put after it brings a row back.
//   - S4. A batch is atomic: no Load sees half of one.
//   - S5. Keys of 1 to MaxKey bytes of any value, values of 0 to MaxValue, batches up to MaxBatch bytes and
//     MaxRows rows are taken. What is beyond is ErrInvalid, and nothing of the batch is written.
//   - S6. What is committed is there after Close and opening again.
//   - S7. It is there after a crash.
//   - S8. A batch that was not committed when the process ended is there whole or not at all.
//   - S9. Close may be called twice and at once with anything; later calls return what the first did.
//   - S10. After Close, Commit and Load say ErrClosed.
//   - S11. Commits may be called by many goroutines. One that began after another had returned comes later.
//   - S12. With a context that has ended nothing is begun, and the error wraps the context's cause.
//   - S13. Nothing is shared: what a caller changes after a call changes nothing in the store.
//   - S14. While a store is open, a second one in the same place is ErrLocked. Close and the end of the
//     process release it.
//   - S15. A Load that is left early, or whose loop commits, holds nobody up.
//   - S16. After a failed sync nothing is acknowledged any more: that Commit and all later ones are
//     ErrFailed. What was committed before is there after opening again.
//   - S17. A row that the disk has changed is ErrCorrupt, never another value; the rows beside it are
//     yielded all the same.
package store
