package arbiter

import "time"

// Config configures an arbiter. All times follow from the TTL of the session.
type Config struct {
	// Members is how many members see each other before one of them serves, or in a later
	// incarnation of the member in the same process a majority of those that the former incarnation
	// counted. At the start so many count as a majority: it is assumed that there are at most one
	// less than that elsewhere, until the view of those that have begun the cluster has not changed
	// for a moment.
	Members int
	// Later is set in a later incarnation of the member in the same process. It may host although
	// it has never seen Members members: others may be gone for good.
	Later bool
	// TTL is the TTL of the leases.
	TTL time.Duration
	// Session is the ID of the session through which this member holds leases. Empty: it is not
	// found out whether all members use one store.
	Session string
}

// within returns d, or the nearer of the two bounds.
func within(least, d, most time.Duration) time.Duration { return max(least, min(d, most)) }

// Operation bounds one call of the lease store.
func (c Config) Operation() time.Duration {
	return within(100*time.Millisecond, c.TTL/10, 3*time.Second)
}

// Beat is how often a leader sends its verdict while members are missing, and how often it tries to
// acquire a lease.
func (c Config) Beat() time.Duration {
	return within(100*time.Millisecond, c.TTL/20, time.Second)
}

// idle is how often a leader sends its verdict while no member is missing.
func (c Config) idle() time.Duration { return 5 * c.Beat() }

// Lapse is how long a member relies on the last verdict of its leader.
func (c Config) Lapse() time.Duration { return 3 * c.Beat() }

// joining is how long the view must be unchanged after the start of the cluster, before members
// that were assumed to exist are not counted any more. It is shorter than a provider takes to
// notice a cut: a half that still counted them would wait for a larger side.
const joining = 2 * time.Second

// rebase is how long the view of a majority must be unchanged before it no longer counts the
// members that are missing.
const rebase = time.Minute

// delay returns how long a side without a majority lets larger sides try first. No side is larger
// than one with exactly half of the members.
func (c Config) delay(size, n int) time.Duration {
	if 2*size >= n {
		return 0
	}
	most := within(2*time.Second, c.TTL/2, 5*time.Second)
	return most * time.Duration(n-size) / time.Duration(n)
}

// lives returns how long a lease must be held by another member before it is certain that this one
// lives: one that has crashed holds it for a TTL.
func (c Config) lives() time.Duration { return c.TTL*5/4 + 2*c.Operation() }

// handed returns how long after a view has changed the lease of the majority is with the leader of
// that view: the former one hears of the new one, and gives the lease up; the new one acquires it.
func (c Config) handed() time.Duration { return 2*c.Beat() + 2*c.Operation() }

// Decided returns how long after the views of a partition have become stable exactly one side has
// an open gate, if the store answers and no lease is held by a member that has crashed.
func (c Config) Decided() time.Duration {
	return c.delay(1, 1000) + 4*c.Beat() + 4*c.Operation() + c.Lapse()
}
