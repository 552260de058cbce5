// Package badger keeps the rows of a replicator in Badger, an embedded database without a server:
//
//	rows, err := badger.Open("/var/lib/shop/ddata", badger.Config{})
//	…
//	defer rows.Close()
//
// Open returns when the directory is locked, its log is replayed and its last commit is compared with the
// anchor.
//
// # What it adds to Badger
//
// Badger syncs its log before it acknowledges, and this package uses it so that what it does under faults
// is either avoided or seen:
//
//   - Commits that meet are written as one transaction, with one sync. Badger by itself syncs each.
//   - Values stay out of Badger's value log, whose failed syncs it logs and forgets, and whose damaged
//     entries it reads as empty.
//   - Every row has a checksum over key and value. Badger's own checks of tables crash the process and are
//     off.
//   - Badger drops the tail of its log from the first damaged record on, without a word. Commits are
//     numbered, and a small file beside it, the anchor, holds a number that was reached, at most a second
//     old: if the log ends before it, Load says ErrCorrupt without a key first.
//   - A damaged key, or a damaged list of tables, makes rows vanish. Every commit carries the sum of all rows:
//     if what Load has yielded has another one, it says ErrCorrupt without a key at the end.
//   - After any error of a commit, or an error in Badger's log that speaks of a sync, the store has failed
//     until it is opened again.
//   - Badger maps its files into memory, so a full disk kills the process. Commits end with ErrFull while
//     less than Config.Reserve and the size of all tables is free: a store may fill half of a disk.
//
// # What remains
//
// A foreign process that fills the disk kills this one all the same. A damaged record of the last second is
// taken for the end of the log. Opening a damaged directory may be refused with ErrCorrupt; what helps then
// is a copy, or the other replicas. flock does not exclude openers on network file systems. A Load holds
// back Badger's clean-up of what is overwritten meanwhile.
//
// The files take up to 200 MB more in apparent size than on the disk, for they are sparse; about 45 MB of heap
// are reserved, and touched as they fill.
package badger
