package core

import "time"

// MaxTTL bounds what a contender believes of a record, so that a damaged one blocks a lease for a day
// and not for ever.
const MaxTTL = 24 * time.Hour

// MaxToken keeps tokens within the signed 64-bit integers of SQL.
const MaxToken = 1<<63 - 1

// Config of a machine, validated by the caller.
type Config struct {
	Owner, Nonce string // Nonce is different in every session
	TTL          time.Duration
	Renew        time.Duration // between renewals
	Operation    time.Duration // given to one call of the store
	Retry        time.Duration // between looks at a lease held by another
	Drain        time.Duration // between "start nothing" and "all ended"
	Margin       time.Duration // for scheduling and delivery; both sides add it
	RateError    float64       // bound on the rate error of any clock
	LockDelay    time.Duration // added to the TTL in the record
	Forever      bool          // tenures never expire
	Shared       bool          // tenures live as long as that of the session record
	Inherit      bool          // what a session of the same owner holds is taken at once: that one is dead
	Fair         bool          // who waits is served in order of arrival
	Keeper       bool          // this is the machine of the session record
	Peers        *Peers        // what the session knows of others; nil: nothing yet
	Jitter       func() float64
}

// forever is as good as, and small enough to add to a clock.
const forever = 1 << 61

// unrenewed reports that tenures do not write their records again. They read them now and then, to learn
// whether somebody else has touched them.
func (c Config) unrenewed() bool { return c.Shared || c.Forever }

// audit is the time between two such reads.
func (c Config) audit() time.Duration { return c.jittered(auditTTLs * c.TTL) }

// auditTTLs is the time between two such reads. Within noticeTTLs a holder that reaches the store has learnt that
// its record is gone, even if one of its calls failed. One that does not reach it never learns: a record that
// does not expire by itself must not be deleted while its holder may be alive.
const (
	auditTTLs  = 3
	noticeTTLs = 5
)

// validity = TTL·(1−ρ) − margin after the send time; stop-by is earlier by the drain.
func (c Config) validity(sent Reading) Validity {
	if c.Forever {
		return Validity{Sent: sent, StopAfter: forever, ValidFor: forever}
	}
	valid := c.TTL - scale(c.TTL, c.RateError) - c.Margin
	return Validity{Sent: sent, StopAfter: valid - c.Drain, ValidFor: valid}
}

// stale is how long a record must stay unchanged before it may be taken: TTL·(1+ρ) + margin.
func (c Config) stale(ttl time.Duration) time.Duration {
	if ttl <= 0 {
		ttl = c.TTL // damaged: no honest holder wrote it
	}
	ttl = min(ttl, MaxTTL)
	return ttl + scale(ttl, c.RateError) + c.Margin
}

// patience is how long an answer is waited for: a little longer than the store was given, so that its
// own error comes first and calls do not overlap.
func (c Config) patience() time.Duration { return c.Operation + c.Operation/8 }

// jittered spreads d by ±10 %.
func (c Config) jittered(d time.Duration) time.Duration {
	return d + scale(d, 0.2*c.Jitter()-0.1)
}

// poll is the time between looks at a lease held by another. A session in a queue must not look too seldom.
func (c Config) poll() time.Duration {
	if c.Fair {
		return c.jittered(c.beat())
	}
	return c.jittered(c.Retry)
}

// beat is the time between two writes of a place in a queue.
func (c Config) beat() time.Duration { return min(c.Retry, c.Renew) }

// placeTTL is how long a place counts that is not written again: two beats may fail. It does not follow TTL: a
// waiter with a TTL of a day, if it dies, must not keep others from a free lease for a day.
func (c Config) placeTTL() time.Duration {
	return min(c.TTL, 3*c.beat()+scale(c.beat(), 0.3)+2*c.patience())
}

// backoff is base/8, doubling with each failure up to base, jittered.
func (c Config) backoff(base time.Duration, failures int) time.Duration {
	return c.jittered(base >> max(0, 4-failures)) // 1st failure: base/8, 4th: base
}

func scale(d time.Duration, f float64) time.Duration { return time.Duration(float64(d) * f) }
