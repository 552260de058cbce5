package leasestore

import (
	"strconv"
	"time"
)

// Record is what a store keeps for a name. A blank record has no Nonce: nobody holds the lease, and
// only the token has a meaning.
type Record struct {
	Owner   string        // for people
	Nonce   string        // of the holder's session
	Token   Token         // of the tenure
	Attempt uint64        // counts the writes of one tenure
	TTL     time.Duration // the holder's
	// Session is not 0 if the holder does not renew this record but the record of its session,
	// whose name is SessionRecords followed by Nonce. The lease is held as long as the session
	// record is renewed and its Token equals Session.
	Session Token
	// Forever reports that the record never expires.
	Forever bool
}

// Version is the store's own identifier of a state: revision, resourceVersion, ETag. It is empty
// only when there is no record.
type Version string

// Token is the fencing token of a tenure: it grows with every tenure of a lease, forever, and is at
// most 2^63-1.
type Token uint64

func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// MaxName is the maximum length of a lease name in bytes. Every store keeps each valid name of up
// to that length, and distinguishes it from all others.
const MaxName = 512

// SessionRecords is the prefix of the names of session records; the nonce of the session follows
// it. No lease may have a name with this prefix.
const SessionRecords = "concord.session."
