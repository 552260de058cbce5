// Package file keeps leases in a directory. It is the embedded store for processes of one machine,
// with nothing to install and nothing to run.
//
//	store, err := file.Open("/var/lib/shop/leases")
//	session, err := coordination.Open(store, coordination.Config{})
//	defer store.Close() // after session.Close
//
// # What is on disk
//
// Each lease has two files, named after it. x.lease holds the record. x.lock is locked while the
// record is being replaced, and keeps the largest token. x.document holds a document. A name that
// does not fit into a file name is hashed; the record contains the full name, and a record of
// another name is an error. The directory is created with mode 0700 and files with 0600. Paths
// never leave the directory, not even through links.
//
// # Guarantees
//
// A record is replaced by writing a new file, syncing it and renaming it under the lock. A process
// that is killed at any moment leaves the old record or the new one, and the kernel releases its
// lock. No version is used twice. If someone deletes a record, tokens continue from the lock file.
// Tokens start again at 1 only if both files are deleted.
//
// A file that is damaged, of another name or of a later format is an error that wraps
// leasestore.ErrDamaged, so an acquire returns an unknown outcome. The package repairs and deletes
// nothing by itself: an operator removes the file.
//
// A process whose directory is moved, removed or replaced while it runs writes into it no more:
// each write is refused with an error that says so, and the process loses its leases within their
// TTL. Until then a process that opens the new directory may get a lease that the backup does not
// contain. So stop all processes before you restore a backup. A restore sets tokens back to those
// of the backup, and a target that remembers larger ones (package fence) rejects the new holders.
// To continue above them, remove the files x.lease and write a larger number into each x.lock, with
// 20 digits.
//
// # Limits
//
// The directory must be on a local file system. Locks on network file systems are unreliable, and
// processes of different machines might not exclude each other. A process that is stopped in the
// middle of a write keeps its lock: other processes cannot renew or acquire that lease until it
// continues or dies, and holders stop in time. Open fails on systems without flock.
//
// docs/stores.md compares the stores. Program examples/lease uses this one.
package file
