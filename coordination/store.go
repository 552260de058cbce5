package coordination

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/concord-go/concord/coordination/internal/core"
)

// Store keeps one record per lease name and replaces it only if nobody else has. It is all a backend
// must provide; Watcher, SessionKeeper, Remover, TokenGiver and Queuer are optional abilities found by assertion. Every
// call comes with a deadline (Config.OperationTimeout) and returns soon after its context ends. Stores are
// called from many goroutines. Names are UTF-8 of at most MaxName bytes, or begin with SessionRecords; a store keeps
// all of them, and refuses a name that it could not read back. A session does not close its store: who opened it closes it after the session.
type Store interface {
	// Load returns the record and its version. Without a record the Version is zero, and the Record
	// but for the last Token, if the store still knows it. A missing or blank record may show a larger
	// Token than the last tenure had, so the next one may exceed that by more than 1. A record that
	// cannot be understood is an error, never a zero Record. The answer is as new as the call: a Swap
	// that returned before Load was called is seen.
	Load(ctx context.Context, name string) (Record, Version, error)
	// Swap writes next if the version is still old, and returns the new version. ErrConflict: the
	// version is another. ErrRefused: certainly not written. Any other error: it may or may not
	// have been written, or may be yet. Records are blanked, never deleted, and no version of a
	// name is ever used twice.
	Swap(ctx context.Context, name string, old Version, next Record) (Version, error)
}

// Watcher tells of changes sooner than polling does. What it says is a hint: the record is read again
// before anything is decided.
type Watcher interface {
	// Watch yields the present record and then the newest one after each change, skipping what was
	// overtaken, until ctx ends. After an error it stops, and is called again later.
	Watch(ctx context.Context, name string) iter.Seq2[Record, error]
}

// SessionKeeper tells that a store keeps Record.Session and Record.Forever, and that nobody who would not
// understand them takes its leases: no older version of this module, and no other program by rules of its own, unless
// what it goes by stays as long as the session record is renewed, and goes for all leases of the session at once.
// Without it each lease is renewed by itself, and Config.Forever is refused.
type SessionKeeper interface {
	// KeepsSessions always gives the same answer.
	KeepsSessions() bool
}

// Remover takes away the record of a session that is over: the session itself does it in Close, and of one that
// has crashed who took a lease of it over, three TTLs later. Without it, one blank record per session stays
// behind, as it does of one that has crashed while nobody wanted its leases. A store may sweep records whose names
// begin with SessionRecords and that have not been written for two days: no TTL is as long. To remove one that is still
// renewed would cost its session all its leases, and never let two hold one.
type Remover interface {
	// Remove deletes the record, and may forget its token, if the version is still old: the name is never
	// used again. ErrConflict: it is another. Any other error: it may or may not have been done.
	Remove(ctx context.Context, name string, old Version) error
}

// TokenGiver is a store whose server gives tokens: the record that Swap writes for a new tenure may have a larger Token than
// the one asked for. Load shows it, and so the next token asked for is larger. What wraps such a store is to be one too.
type TokenGiver interface {
	// TokenOf returns the Token of the record that Swap has written, by the version that it has returned.
	TokenOf(v Version) Token
}

// Queuer keeps, for each lease, a queue of those who wait for it: Config.Fair needs one. It decides nothing but
// who tries first, so it need not be as durable as records: a queue may be lost or, where it cannot be read, begun
// anew.
//
// The places of the dead are passed over by the sessions themselves, which see that Beat does not grow. A store
// whose server notices dead clients may remove them sooner.
type Queuer interface {
	// Enqueue writes a place into the queue of a name: at its end, or, if the nonce stands there already, in
	// its present place; a smaller Beat than the one that is there changes nothing. It returns the places before
	// it in order of arrival. The queue may be bounded, at 256 places or more: then that which has not been
	// written for longest goes. On any error the place may or may not have been written.
	Enqueue(ctx context.Context, name string, p Place) (ahead []Place, err error)
	// Leave removes places, except those that have been written again with a larger Beat. What is not there
	// is no error.
	Leave(ctx context.Context, name string, gone []Place) error
}

// Place is one session in the queue of a lease.
type Place struct {
	Nonce string        `json:"nonce"` // of the session
	Beat  uint64        `json:"beat"`  // grows each time it is written
	TTL   time.Duration `json:"ttl"`   // unchanged for longer, it does not count; in nanoseconds
}

// SessionRecords begins the names of session records, each completed by the nonce of its session. No lease
// may be named so.
const SessionRecords = "concord.session."

// Record is what a store keeps for a name. A blank record has no Nonce: nobody holds the lease, and
// only the token counts.
type Record struct {
	Owner   string        // for people
	Nonce   string        // of the holder's session
	Token   Token         // of the tenure
	Attempt uint64        // counts the writes of one tenure
	TTL     time.Duration // the holder's
	// Session is not 0 if the holder does not renew this record, but that of its session, whose name is
	// SessionRecords and Nonce. The lease is held as long as that has the Token Session and is renewed.
	Session Token
	// Forever says that it never expires.
	Forever bool
}

// Version is the store's own mark of a state: revision, resourceVersion, ETag. It is empty only when
// there is no record.
type Version string

func recordOf(r core.Record) Record {
	return Record{Owner: r.Owner, Nonce: r.Nonce, Token: Token(r.Token), Attempt: r.Attempt, TTL: r.TTL,
		Session: Token(r.Session), Forever: r.Forever}
}

func (r Record) core() core.Record {
	return core.Record{Owner: r.Owner, Nonce: r.Nonce, Token: uint64(r.Token), Attempt: r.Attempt, TTL: r.TTL,
		Session: uint64(r.Session), Forever: r.Forever}
}

// statusOf sorts what Swap returned.
func statusOf(err error) core.Status {
	switch {
	case err == nil:
		return core.Written
	case errors.Is(err, ErrConflict):
		return core.Conflicted
	case errors.Is(err, ErrRefused):
		return core.Refused
	}
	return core.Unknown
}
