// Package coordination is a distributed lock with a time to live, a fencing token and notice of loss:
// a lease. It is what singletons and shards rest on, and useful by itself wherever one process of many
// must do something.
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
// An actor that is to work only under a lease is made by Gated; one written by hand uses
// Lease.AcquireTo and the messages Acquired and LeaseLost; Props offers a lease to actors by messages. A
// Provider makes sessions from named sections of a configuration; Lease.Bool is for code written for the leases
// of other actor systems.
//
// # What the caller must do
//
//  1. Choose Config.TTL longer than the pauses of the process that should be survived, and Config.Drain
//     longer than the work needs to stop.
//  2. Call Check before each guarded action, and keep the action short.
//  3. Stop when Context ends.
//  4. Put Token into each effect, and let its target keep the largest token it has seen and refuse
//     smaller ones, in the same step as the effect.
//  5. Call Release when the work has ended, also after a loss. Do does it.
//  6. Treat an error that is not ErrHeld as "not holding, and nobody knows who is".
//
// # What is guaranteed
//
// At any moment of true time at most one session holds a valid grant of a name, for any difference
// between the clocks, any loss, delay or repetition of calls of the store, any pause, crash or restart
// of processes, if
//
//   - the store compares and replaces records atomically and never goes back to an older state,
//   - every clock runs right within Config.ClockRateError, and
//   - nobody deletes or overwrites records behind the store's back. ForceRelease does, on purpose. Who has seen
//     a record before it was deleted still waits until its holder has expired or must have noticed, which takes
//     five TTLs at most if it reaches the store; who comes new does not.
//
// The holder counts from the moment before it sent the write that is found in the record, on the
// fastest of the monotonic, boot and wall clock, and gives up early by the rate error and Config.Margin.
// If the lease is held through the session, that write is the one of the session's record.
// A contender counts from the moment it saw that record, on its monotonic clock, and waits longer by
// the same amounts. No time is ever compared between machines.
//
// Tokens grow with every tenure, also after expiry, crash and restart. A loss is told once per tenure,
// after the grant. A caller that gives up leaves no holder behind. An unknown outcome is resolved by
// reading, never guessed.
//
// # What is not
//
// The lease ends a tenure on time; it cannot end the work. Between a Check and the effect that follows,
// a process may be paused for longer than any TTL, and then act when another holds the lease. Only a
// target that compares tokens keeps such an effect out. The same holds if a clock is worse than
// promised, and after a ForceRelease.
//
// Unless Config.Fair is set there is no order among those who wait: after a release, whoever comes first wins.
// While the store is away nobody acquires, and holders stop when their time is up.
//
// # What it costs
//
// A session renews one record for all its leases, where the store is a SessionKeeper: a thousand leases cost
// one write in TTL/3, two for each that is acquired and released, and a look at each in three TTLs. The
// session's record is written before the first lease is acquired, and removed by Close, or after a crash by who takes
// its leases over. When it cannot be renewed, all leases of the session are lost at one time. With other stores, and with Config.Forever, each
// lease has its own renewals, or none.
//
// # How long a takeover takes
//
// After a release: the store's Watch, or Config.RetryInterval, and one write. After a crash: the
// holder's TTL and Config.LockDelay since its last renewal, a little more for clocks and margin, and the watch or the
// interval; up to one TTL longer for who did not watch the record before.
//
// # Life of a grant
//
//	send time            stop-by                  validity ends        others may acquire
//	   │ renewed at TTL/3   │ Check fails            │ work has ended      │
//	   ├────────────────────┼────────────────────────┼─────────────────────┤
//	   0                    V − Drain                V = TTL·(1−ρ)−Margin  TTL·(1+ρ)+Margin, or more
//
// A renewal that succeeds before stop-by moves everything to the right. Less than TTL/3 before V,
// OnNearExpiry tells that renewals are failing. At stop-by the loss is final.
//
// The timing follows the leader election of Kubernetes' client-go (observed records instead of
// timestamps), the validity arithmetic of Redlock, and Gray and Cheriton's leases; the token is
// Chubby's sequencer. It differs from the leases of Akka, Pekko and Akka.NET in that a check compares
// time, a token exists, an unknown outcome stays unknown, and wall clocks do not matter.
package coordination
