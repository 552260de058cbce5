package core

import "time"

// MaxTTL bounds the TTL that a contender accepts from a record, so that a damaged record blocks a
// lease for a day and not forever.
const MaxTTL = 24 * time.Hour

// MaxToken keeps tokens within the signed 64-bit integers of SQL.
const MaxToken = 1<<63 - 1

// Config configures a machine. The caller validates it.
type Config struct {
	Name         string // of the lease, for Common.Ready
	Owner, Nonce string // Nonce is different in every session
	TTL          time.Duration
	Renew        time.Duration // between renewals
	Operation    time.Duration // timeout of one call of the store
	Retry        time.Duration // between reads of a lease held by another session
	Drain        time.Duration // between "start no new work" and "all work has ended"
	Margin       time.Duration // for scheduling and delivery; holders and contenders add it
	RateError    float64       // bound on the rate error of any clock
	LockDelay    time.Duration // added to the TTL in the record
	Forever      bool          // tenures never expire
	Shared       bool          // tenures live as long as the tenure of the session record
	Inherit      bool          // leases of an earlier session of the same owner are taken at once
	Opened       time.Duration // when the session was opened; monotonic
	Fair         bool          // waiters are served in order of arrival
	Keeper       bool          // this is the machine of the session record
	Common       *Common       // shared by the machines of a session; nil: by none
	Jitter       func() float64
}

// forever stands for an infinite duration, and is small enough to be added to a clock.
const forever = 1 << 61

// unrenewed reports whether tenures never write their records again. They read them now and then,
// to notice writes by others.
func (c Config) unrenewed() bool { return c.Shared || c.Forever }

// audit returns the time between two such reads.
func (c Config) audit() time.Duration { return c.jittered(auditTTLs * c.TTL) }

// auditTenure returns the time between two such reads of a holder. One that may have a successor
// reads as often as others renew, so that it notices a takeover within its TTL.
func (c Config) auditTenure() time.Duration {
	if c.Inherit {
		return c.jittered(c.Renew)
	}
	return c.audit()
}

// auditTTLs is the time between two such reads, in TTLs. Within noticeTTLs a holder that can reach
// the store has noticed that its record is gone, even if one of its calls failed. A holder that
// cannot reach the store never notices: a record that does not expire by itself must not be deleted
// while its holder may be alive.
const (
	auditTTLs  = 3
	noticeTTLs = 5
)

// validity returns TTL·(1−ρ) − margin after the send time; stop-by is earlier by the drain.
func (c Config) validity(sent Reading) Validity {
	if c.Forever {
		return Validity{Sent: sent, StopAfter: forever, ValidFor: forever}
	}
	valid := c.TTL - scale(c.TTL, c.RateError) - c.Margin
	return Validity{Sent: sent, StopAfter: valid - c.Drain, ValidFor: valid}
}

// stale returns how long a record must stay unchanged before it may be taken: TTL·(1+ρ) + margin.
func (c Config) stale(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		ttl = c.TTL // damaged: no honest holder wrote it
	}
	ttl = min(ttl, MaxTTL)
	return ttl + scale(ttl, c.RateError) + c.Margin
}

// patience returns how long the machine waits for an answer: a little longer than the timeout of
// the store, so that the store's own error comes first and calls do not overlap.
func (c Config) patience() time.Duration { return c.Operation + c.Operation/8 }

// jittered spreads d by ±10 %.
func (c Config) jittered(d time.Duration) time.Duration {
	return d + scale(d, 0.2*c.Jitter()-0.1)
}

// poll returns the time between reads of a lease held by another session. A session in a queue must
// not read too rarely.
func (c Config) poll() time.Duration {
	if c.Fair {
		return c.jittered(c.beat())
	}
	return c.jittered(c.Retry)
}

// beat returns the time between two writes of a place in a queue.
func (c Config) beat() time.Duration { return min(c.Retry, c.Renew) }

// placeTTL returns how long a place counts that is not written again: two beats may fail. It does
// not follow TTL: a dead waiter with a TTL of a day must not keep others from a free lease for a
// day.
func (c Config) placeTTL() time.Duration {
	return min(c.TTL, 3*c.beat()+scale(c.beat(), 0.3)+2*c.patience())
}

// ignored returns how long a place must stay unchanged before it does not count. Its margin is at
// most one beat, since a place protects nothing: the default margin of a TTL of a day is half an
// hour.
func (c Config) ignored(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		ttl = c.placeTTL() // damaged
	}
	d := min(ttl, MaxTTL)
	return d + scale(d, c.RateError) + min(c.Margin, c.beat())
}

// backoff returns base/8 for the first failure, doubled with each further failure up to base,
// jittered.
func (c Config) backoff(base time.Duration, failures int) time.Duration {
	return c.jittered(base >> max(0, 4-failures)) // 1st failure: base/8, 4th: base
}

func scale(d time.Duration, f float64) time.Duration { return time.Duration(float64(d) * f) }
