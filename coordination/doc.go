// Package coordination implements leases: distributed locks with a time to live, a fencing token
// and notification of loss. Singletons and shards are built on leases, and a lease is useful by
// itself wherever exactly one of many processes must do something.
//
//	store, err := file.Open("/var/lib/shop/leases")
//	session, err := coordination.Open(store, coordination.Config{})
//	defer session.Close(context.Background())
//
//	err = session.Lease("billing").Do(ctx, func(ctx context.Context, g *coordination.Grant) error {
//		for _, customer := range customers {
//			if err := g.Check(); err != nil { // compares the clock: no I/O, no allocation
//				return err
//			}
//			if err := bill(ctx, db, customer, g.Token()); err != nil {
//				return err
//			}
//		}
//		return nil
//	})
//
// # Which part is for what
//
//	Open, Config, Session       a process's connection to one store
//	Lease, Grant, Tenure        acquire, check, release; Lease.Do does all three
//	Gated                       an actor that works only under a lease
//	Acquired, LeaseLost         the messages of Lease.AcquireTo, for an actor written by hand
//	Holder                      the present holder of a lease
//	Status, LeaseStatus         what a session and its leases are doing
//	Document                    opaque bytes beside the leases
//
// Programs open a Store of a package below this one and pass it to Open; they do not call it.
// Package leasestore is the contract for authors of stores. Package leaseconfig opens stores and
// sessions from named sections of a configuration.
//
// # What the caller must do
//
//  1. Choose Config.TTL longer than the process pauses that a holder should survive, and
//     Config.Drain longer than the work needs to stop.
//  2. Call Check before each guarded action, and keep the action short.
//  3. Stop when Context ends.
//  4. Put Token into each effect, and let its target keep the largest token it has seen and reject
//     smaller ones, in the same step as the effect.
//  5. Call Release when the work has stopped, also after a loss. Do does this.
//  6. Treat an error that is not ErrHeld as "not held here, and the holder is unknown".
//
// # What is guaranteed
//
// At any moment of true time at most one session holds a valid grant of a name. This holds for any
// difference between the clocks, for any loss, delay or repetition of store calls, and for any
// pause, crash or restart of processes, if
//
//   - the store compares and replaces records atomically and never returns to an older state,
//   - every clock runs at the right rate within Config.ClockRateError, and
//   - nobody deletes or overwrites records behind the store's back. ForceRelease does so on
//     purpose. A contender that saw a record before it was deleted still waits until the holder has
//     expired or must have noticed the deletion: at most five TTLs if the holder can reach the
//     store. A contender that first reads after the deletion does not wait.
//
// A holder counts from the moment before it sent the write that the record contains. It takes the
// fastest of its monotonic, boot and wall clock, and gives up early by the rate error and
// Config.Margin. If the lease is held through the session, that write is the one in the session's
// record. A contender counts from the moment it first saw that record, on its monotonic clock, and
// waits longer by the same amounts. Times of different machines are never compared.
//
// Tokens grow with every tenure, also after expiry, crash and restart. A loss is reported once per
// tenure, after the grant. A caller that gives up leaves no holder behind. An unknown outcome is
// resolved by reading, never guessed.
//
// # What is not
//
// The lease ends a tenure on time, but it cannot stop the work. Between a Check and the effect that
// follows, a process may be paused for longer than any TTL and then act while another process holds
// the lease. Only a target that compares tokens rejects such an effect. The same holds if a clock
// is worse than Config.ClockRateError says, and after a ForceRelease.
//
// Unless Config.Fair is set, waiters have no order: after a release, the first to claim the lease
// gets it. While the store is unavailable no session acquires a lease, and holders stop when their
// time is up.
//
// # What it costs
//
// If the store is a leasestore.SessionKeeper, a session renews one record for all its leases. A
// thousand leases then cost one write every TTL/4, two writes for each lease that is acquired and
// released, and one read of each lease every three TTLs. The session writes its record before it
// acquires its first lease, and Close removes it; after a crash, the session that takes over one of
// its leases removes it. If the record cannot be renewed, the session loses all its leases at once.
// With other stores each lease has its own renewals; with Config.Forever it has none.
//
// # How long a takeover takes
//
// After a release: the notification of the store's Watch, or Config.RetryInterval, and one write.
// After a crash: the holder's TTL and Config.LockDelay since its last renewal, a little more for
// clocks and margin, and the notification or the interval. A contender that did not watch the
// record before the crash may wait up to one more TTL.
//
// # Life of a grant
//
//	send time            stop-by                  validity ends        others may acquire
//	   │ renewed at TTL/4   │ Check fails            │ work has ended      │
//	   ├────────────────────┼────────────────────────┼─────────────────────┤
//	   0                    V − Drain                V = TTL·(1−ρ)−Margin  TTL·(1+ρ)+Margin, or more
//
// A renewal that succeeds before stop-by moves everything to the right. When less than TTL/3
// remains before V, OnNearExpiry reports that renewals are failing. At stop-by the loss is final.
//
// The timing follows the leader election of Kubernetes' client-go (observed records instead of
// timestamps), the validity arithmetic of Redlock, and Gray and Cheriton's leases; the token is
// Chubby's sequencer. It differs from the leases of Akka, Pekko and Akka.NET in that a check
// compares time, a token exists, an unknown outcome stays unknown, and wall clocks of different
// machines are never compared. A holder whose own wall clock jumps forward by the time that remains
// loses the lease, because it counts by the fastest of its clocks.
//
// docs/leases.md is the guide. The programs examples/lease and examples/job use a lease directly.
package coordination
