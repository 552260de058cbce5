// Package badger keeps the rows of a replicator in Badger, an embedded database without a server:
//
//	rows, err := badger.Open("/var/lib/shop/ddata", badger.Config{})
//	…
//	defer rows.Close()
//
// Open returns when the directory is checked and locked, its log is replayed and its last commit is compared with the
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
//     off; a damaged table itself ends the process as soon as Badger compacts it. Open reads the keys of all tables first,
//     and refuses with store.ErrCorrupt what cannot be read.
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
// # Encryption
//
// With Config.Key rows are encrypted before they are written, and the files tell no more than their sizes and how many
// commits there were. It protects a disk that is stolen or returned, not a process that is read. Nothing proves to the
// store that a row is of this directory: who can write to the disk can put back older files. The key of a directory cannot
// be changed; a member with a new directory and a new key is filled by the others. Without its key a directory is lost.
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
//
// # Format 1
//
// The directory holds the files of Badger 4 and the file ANCHOR. All numbers here are little-endian, checksums are
// CRC-32C (Castagnoli).
//
//	ANCHOR, offset 0      "concord rows, badger, format 1\n", zeros up to 60 bytes, checksum of these 60
//	ANCHOR, offset 4096   slot: number of a commit (8 bytes), checksum of the 8
//	ANCHOR, offset 8192   the other slot; they are written in turn, and the larger number counts
//
// Keys and values in Badger, and in package bbolt:
//
//	'r' and the row's key   the row
//	'm'                     number of the last commit (8), sum of all rows (4), difference that Load has told (4)
//
// Each value begins with its version, 1 (1 byte), and the checksum of version, key with its first byte, and value (4).
// The sum of all rows is the exclusive or of their checksums. A later format has another number in ANCHOR, and is refused by
// this version; this format will be read by every later one.
package badger
