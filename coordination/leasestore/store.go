package leasestore

import (
	"context"
	"iter"
)

// Store keeps one record per lease name and replaces records by compare-and-set. A backend must
// implement only Store; Watcher, SessionKeeper, Remover, TokenGiver, Documents and Batcher
// are optional abilities found by assertion. Every call has a deadline
// and returns soon after its context ends. Stores are called from many goroutines. Names are UTF-8
// of at most MaxName bytes, or begin with SessionRecords. A store keeps all such names, and rejects
// a name that it could not read back. A session does not close its store: the caller that opened
// the store closes it after the session.
type Store interface {
	// Load returns the record and its version. If there is no record, the Version is empty and the
	// Record is zero except for the last Token, if the store still knows it. A missing or blank
	// record may show a larger Token than the last tenure had, so the next token may be larger by
	// more than 1. A record that cannot be decoded is an error, never a zero Record.
	//
	// The answer reflects every Swap of this store that returned before the call, and is no older
	// than any answer before, for whatever name. It should reflect every Swap of other stores that
	// returned before, too. If it is older, a session may be told that a lease is held that has
	// just been released, but no lease is held twice.
	Load(ctx context.Context, name string) (Record, Version, error)
	// Swap writes next if the version is still old, and returns the new version. ErrConflict means
	// that the version is not old. ErrRefused means that next was certainly not written. After any
	// other error next may have been written, or may still be written later. Records are blanked,
	// never deleted, and no version of a name is ever used twice.
	Swap(ctx context.Context, name string, old Version, next Record) (Version, error)
}

// Watcher reports changes sooner than polling does, and saves the polls of a session that waits for
// many leases. Its reports are hints: the session reads the record again before it decides
// anything.
type Watcher interface {
	// Watch yields the present record and then the newest record after each change, skipping
	// records that were overwritten in the meantime, until ctx ends. Once it has yielded a record,
	// it misses no later change of the holder, or ends: after an error the iteration stops, and
	// Watch is called again later.
	Watch(ctx context.Context, name string) iter.Seq2[Record, error]
}

// SessionKeeper reports that a store keeps Record.Session and Record.Forever, and that only
// programs that understand these fields take its leases. This excludes older versions of this
// module, and other programs with rules of their own. Such a program is allowed if what it checks
// stays alive as long as the session record is renewed, and ends for all leases of the session at
// once. With a store that is not a SessionKeeper each lease has its own renewals, and Open rejects
// Config.Forever.
type SessionKeeper interface {
	// KeepsSessions always returns the same value.
	KeepsSessions() bool
}

// Remover deletes the record of a session that has ended. The session itself does so in Close.
// After a crash, the session that took over a lease does so three TTLs later. With a store that is
// not a Remover, one blank record per session stays behind. A record also stays behind if a session
// has crashed and no contender wanted its leases. A store may delete records whose names begin with
// SessionRecords and that have not been written for two days: no TTL is that long. Deleting a
// record that is still renewed costs its session all its leases, but never lets two sessions hold
// one lease.
type Remover interface {
	// Remove deletes the record, and may forget its token, if the version is still old: the name is
	// never used again. ErrConflict means that the version is not old. After any other error the
	// record may or may not have been deleted.
	Remove(ctx context.Context, name string, old Version) error
}

// TokenGiver is a store whose server assigns tokens: the record that Swap writes for a new tenure
// may have a larger Token than the caller asked for. Load returns the assigned Token, so the next
// token asked for is larger. The record of a session gets the token asked for, since its server may
// delete the record and forget the token: a smaller one later would be taken for that of a tenure
// that has ended. Wrappers of such a store must also implement TokenGiver.
type TokenGiver interface {
	// TokenOf returns the Token of the record that Swap wrote, given the version that Swap
	// returned.
	TokenOf(v Version) Token
}
