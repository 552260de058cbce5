// Package bbolt keeps the rows of a replicator in one file of bbolt, an embedded B+tree. It is
// meant for small hosts and for disks that may become full:
//
//	rows, err := bbolt.Open("/var/lib/shop/ddata", bbolt.Config{})
//	…
//	defer rows.Close()
//
// Open returns after it has checked and locked the directory, and has read the whole file and found
// it to be a valid tree.
//
// # Choosing between this store and package badger
//
//	                          bbolt                             badger
//	disk that becomes full    commits return ErrFull; reads     another process that fills it kills this one;
//	                          and later commits work            half of the disk stays free for compactions
//	heap at rest              under 1 MB                        44 MB, Badger's own, touched as it fills; 90 MB later
//	files                     one that never shrinks, about     several, whose apparent size is about 200 MB more
//	                          2 times the size of the rows      than their size on the disk
//	a commit                  two syncs, a page (4 KiB) for     what is written, and two syncs, one of an unchanged file
//	                          each row that is touched
//	many small random writes  slower with the number of rows    at constant speed; compactions come later
//	                          that a commit touches
//	start                     reads the file twice              opens the tables, replays the log
//	encryption at rest        none                              Config.Key
//
// Use badger for many writes or large states, and this store for few writes, little memory, or a
// disk shared with others. A directory belongs to one kind of store: opening it with the other
// returns store.ErrForeign. To switch, start the member with a new directory, which the other
// replicas fill, or use inspect.Import.
//
// # What it adds to bbolt
//
//   - Concurrent commits are written as one transaction.
//   - Every row has a checksum, and every commit has a number and the sum of all rows. A small file
//     beside the rows, the anchor, holds a number that was reached, at most a second old. Load thus
//     detects a changed row, a vanished row, and a file that has gone back to an older state, and
//     yields store.ErrCorrupt.
//   - bbolt trusts its pages: one damaged bit may make it read foreign memory, loop, or crash the
//     process. Open first reads the tree itself, and returns store.ErrCorrupt if it is not valid.
//     Load reads the pages itself, too.
//   - bbolt uses the older of its two heads if the newer one is damaged, which loses the last
//     commit. Load reports it.
//   - The list of free pages is not stored on the disk, where it would grow, be written with every
//     commit, and if damaged cause live pages to be overwritten. It is derived from the tree.
//   - The address space for the file, Config.MaxSize, is reserved from the start. Mapping the file
//     again would have to wait for every Load, and would wait forever for a Load whose loop
//     commits.
//   - A write for which the disk, a quota or MaxSize has no room returns store.ErrFull, and nothing
//     of the commit counts. After any other error, including every error of a sync, the store has
//     failed until it is reopened.
//
// # Limitations
//
// If a page of the tree is damaged, Open rejects the directory: restore it from a copy, or let the
// other replicas fill a new one. The file keeps its size when rows are deleted, and reuses the
// space. A Load keeps overwritten data in the file until it ends. flock does not exclude openers on
// network file systems. Some statistics count the memory map as memory of the process; the system
// reclaims it as needed.
//
// # Format 1
//
// The directory holds ANCHOR, as described in package badger but with the word bbolt, and rows.db:
// bbolt's format 2 with pages of 4096 bytes, no list of free pages, and one bucket, "rows". Its
// keys and values are those of package badger. bbolt's own numbers are in the machine's byte order;
// all others are little-endian.
//
// docs/durability.md is the guide, and compares this store with package badger. Program
// examples/durable uses a store.
package bbolt
