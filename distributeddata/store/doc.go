// Package store defines what a replicator needs to keep its rows on a disk: atomic batches of puts
// and deletes, and a stream of all rows at the next start.
//
// A row is a key and a value; the store treats both as bytes. Once Commit has returned nil, the
// batch survives the end of the process at any moment. It also survives a loss of power if the disk
// keeps what it was told to flush. Package testkit/storetest checks a store against the whole
// contract:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Disk { … })
//	}
//
// Package distributeddata/badger is a store on real disks. The disks of package testkit's virtual
// clusters provide one that fails on command.
//
// # What a store must do
//
// The rules have the numbers used by the suite.
//
//   - S1. Load yields every row once, in ascending order of the keys' bytes. A new store has none.
//   - S2. The last write of a key wins: across batches in the order of their commits, and within a
//     batch.
//   - S3. A delete removes the row; deleting a missing row is no error. A later put adds the row
//     again.
//   - S4. A batch is atomic: no Load sees a part of one.
//   - S5. A store accepts keys of 1 to MaxKey arbitrary bytes, values of 0 to MaxValue bytes, and
//     batches of up to MaxBatch bytes and MaxRows rows. Beyond these bounds it returns ErrInvalid
//     and writes nothing of the batch.
//   - S6. Committed rows are present after Close and reopening.
//   - S7. Committed rows are present after a crash.
//   - S8. A batch that was not committed when the process ended is present as a whole or not at
//     all.
//   - S9. Close may be called twice, and concurrently with any call; later calls return the first
//     result.
//   - S10. After Close, Commit and Load return ErrClosed.
//   - S11. Commit is safe for concurrent use. A commit that began after another had returned comes
//     later.
//   - S12. With a context that is done, a call does nothing, and its error wraps the context's
//     cause.
//   - S13. No memory is shared: changes that a caller makes after a call do not affect the store.
//   - S14. While a store is open, opening a second one in the same place returns ErrLocked. Close
//     and the end of the process release the lock.
//   - S15. A Load that stops early, or whose loop commits, does not block other calls.
//   - S16. After a failed sync the store acknowledges nothing: that Commit and all later ones
//     return ErrFailed. Earlier committed rows are present after reopening.
//   - S17. A row that the disk has changed yields ErrCorrupt, never a different value; the rows
//     beside it are still yielded.
//
// docs/durability.md is the guide to durable data.
package store
