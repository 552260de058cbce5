// Package badger keeps the rows of a replicator in Badger, an embedded database without a server:
//
//	rows, err := badger.Open("/var/lib/shop/ddata", badger.Config{})
//	…
//	defer rows.Close()
//
// Open returns after it has checked and locked the directory, replayed the log, and compared the
// last commit with the anchor.
//
// # What it adds to Badger
//
// Badger syncs its log before it acknowledges a commit. This package uses Badger so that its
// misbehaviour under faults is either avoided or detected:
//
//   - Concurrent commits are written as one transaction, with one sync. Badger by itself syncs
//     each.
//   - Values stay out of Badger's value log. Badger only logs failed syncs of that log, and reads
//     its damaged entries as empty.
//   - Every row has a checksum over key and value. Badger's own checks of tables crash the process
//     and are off. A damaged table ends the process as soon as Badger compacts it, so Open reads
//     the keys of all tables first, and returns store.ErrCorrupt if it cannot read them.
//   - Badger silently drops the tail of its log from the first damaged record on. Commits are
//     numbered, and a small file beside the log, the anchor, holds a number that was reached, at
//     most a second old. If the log ends before that number, Load first yields ErrCorrupt without a
//     key.
//   - A damaged key, or a damaged list of tables, makes rows vanish. Every commit carries the sum
//     of all rows. If the sum of the rows that Load has yielded differs, Load ends with ErrCorrupt
//     without a key.
//   - After any error of a commit, or an error in Badger's log that mentions a sync, the store has
//     failed until it is reopened.
//   - Badger maps its files into memory, so a full disk kills the process. Commits return ErrFull
//     while less than Config.Reserve plus the size of all tables is free, so a store may fill half
//     of a disk.
//
// # Encryption
//
// With Config.Key rows are encrypted before they are written. The files reveal only their sizes and
// the number of commits. Encryption protects a disk that is stolen or returned, but not the memory
// of the process. The store cannot verify that a row belongs to this directory: anyone who can
// write to the disk can put back older files. The key of a directory cannot be changed. To change
// it, use a new directory with a new key; the other members fill it. Without its key a directory is
// lost.
//
// # Limitations
//
// Another process that fills the disk still kills this one. A damaged record of the last second is
// mistaken for the end of the log. Open may reject a damaged directory with ErrCorrupt; restore it
// from a copy, or let the other replicas fill a new one. flock does not exclude openers on network
// file systems. A Load delays Badger's removal of data that is overwritten meanwhile.
//
// The apparent size of the files is up to 200 MB more than their size on the disk, since they are
// sparse. About 45 MB of heap are reserved, and touched as they fill.
//
// # Format 1
//
// The directory holds the files of Badger 4 and the file ANCHOR. All numbers here are
// little-endian; checksums are CRC-32C (Castagnoli).
//
//	ANCHOR, offset 0      "concord rows, badger, format 1\n", zeros up to 60 bytes, checksum of these 60
//	ANCHOR, offset 4096   slot: number of a commit (8 bytes), checksum of the 8
//	ANCHOR, offset 8192   the other slot; the slots are written in turn, and the larger number counts
//
// Keys and values in Badger, and in package bbolt:
//
//	'r' and the row's key   the row
//	'm'                     number of the last commit (8), sum of all rows (4), difference reported by Load (4)
//
// Each value begins with its version, 1 (1 byte), and the checksum of version, key with its first
// byte, and value (4). The sum of all rows is the exclusive or of their checksums. A later format
// will have another number in ANCHOR, and this version rejects it. Every later version will read
// this format.
//
// docs/durability.md is the guide, and compares this store with package bbolt. Program
// examples/durable uses a store.
package badger
