// Package bbolt keeps the rows of a replicator in one file of bbolt, an embedded B+tree, for small hosts and disks that
// may become full:
//
//	rows, err := bbolt.Open("/var/lib/shop/ddata", bbolt.Config{})
//	…
//	defer rows.Close()
//
// Open returns when the directory is checked and locked, and the whole file is read and found to be a tree.
//
// # This store or package badger
//
//	                          bbolt                             badger
//	disk that becomes full    commits end with ErrFull, reads   a foreign process that fills it kills this one;
//	                          and later commits go on           half of the disk stays free for compactions
//	heap at rest              under 1 MB                        44 MB, Badger's own, touched as it fills; 90 MB later
//	files                     one, never smaller, some 2 times  several, some 200 MB of apparent size more than
//	                          the size of the rows              they take on the disk
//	a commit                  two syncs, a page (4 KiB) for     what is written, and two syncs, one of an unchanged file
//	                          each row that is touched
//	many small random writes  slower with the number of rows    as fast as ever, compactions come later
//	                          that a commit touches
//	start                     reads the file twice              opens the tables, replays the log
//	encryption at rest        none                              Config.Key
//
// Take badger for many writes or large states, this one for few writes, little memory, or a disk shared with others.
// A directory is of one store: Open of the other one is store.ErrForeign, and the way from one to the other is a member
// with a new directory, which the other replicas fill.
//
// # What it adds to bbolt
//
//   - Commits that meet are written as one transaction.
//   - Every row has a checksum, every commit a number and the sum of all rows, and a small file beside the rows, the
//     anchor, holds a number that was reached, at most a second old. So a changed row, one that has vanished, and a file
//     that has gone back to an older state are told by Load, with store.ErrCorrupt.
//   - bbolt believes its pages: one damaged bit may let it read foreign memory, loop, or crash the process. Open reads
//     the tree by itself first, and refuses what is none with store.ErrCorrupt; Load reads pages by itself, too.
//   - bbolt uses the older of its two heads when the newer one is damaged, and with it the last commit is gone. Load says so.
//   - The list of free pages is not on the disk, where it would grow, be written with every commit, and if damaged let
//     live pages be overwritten. It is made from the tree.
//   - The address space for the file is reserved from the start, Config.MaxSize, for mapping the file again would wait
//     for every Load, and a Load whose loop commits for ever.
//   - A write for which the disk, a quota or MaxSize has no room is store.ErrFull, and nothing of the commit counts. After
//     any other error, all of syncs among them, the store has failed until it is opened again.
//
// # What remains
//
// A damaged page of the tree is a directory that Open refuses: a copy, or the other replicas, help. The file keeps its
// size when rows are deleted, and uses the room again. A Load keeps what is overwritten meanwhile in the file. flock does
// not exclude openers on network file systems. The memory map counts as memory of the process in some statistics; the
// system takes it back as it likes.
//
// # Format 1
//
// The directory holds ANCHOR, as package badger describes it, with the word bbolt, and rows.db: bbolt's format 2 with pages of
// 4096 bytes, no list of free pages, and one bucket, "rows". Its keys and values are those of package badger. The numbers
// of bbolt are of the machine's byte order, all others are little-endian.
package bbolt
