// Package file keeps leases in a directory: the embedded store for processes of one machine, with
// nothing to install and nothing to run.
//
//	store, err := file.Open("/var/lib/shop/leases")
//	session, err := coordination.Open(store, coordination.Config{})
//	defer store.Close() // after session.Close
//
// # What is on disk
//
// Per lease two files, named after it: x.lease holds the record, x.lock is locked while the record is
// being replaced and keeps the largest token. While sessions with Config.Fair wait, x.queue says in which order; it
// is not synced, and begun anew where it is damaged. A name that does not fit into a file name is hashed; the
// record repeats the full name, and a record of another name is an error. The directory is created
// with mode 0700, files with 0600, and paths never leave the directory, not through links either.
//
// # Guarantees
//
// A record is replaced by writing a new file, syncing it and renaming it under the lock. A process that
// is killed at any moment leaves the old record or the new one, and the kernel lets go of its lock. No
// version is used twice. If somebody deletes a record, tokens go on from the lock file; only who
// deletes both starts again at 1.
//
// A file that is damaged, of another name or of a later format is an error (ErrDamaged), so that an
// acquire ends as unknown. Nothing is repaired or deleted by itself: an operator removes the file.
//
// # Limits
//
// The directory must be on a local file system. Locks on network file systems are not to be relied
// on, and this machine's processes would not exclude another's. A process that is stopped in the middle
// of a write keeps its lock: others cannot renew or acquire that lease until it goes on or dies, and
// holders stop in time. Systems without flock are refused by Open.
package file
