// Package sim plays seeded histories of deterministic state machines in virtual time.
//
// A history is a function of a [World]: it picks sizes and faults from the world's seed, starts the
// machines under test, schedules what happens to them, lets time pass, and calls Fail when an
// invariant is broken. Everything it does comes from the seed, so one seed is one history.
//
//	func TestHistories(t *testing.T) {
//		sim.Run(t, sim.Seeds{First: 1, Count: 1000}, func(w *sim.World) {
//			nodes := start(w, 3+w.Rand().IntN(3)) // the seed picks the size
//			w.Faults = sim.Faults{Loss: 0.2, Delay: 10 * time.Millisecond, Jitter: 100 * time.Millisecond}
//			for range 50 {
//				w.Act(w.Moment(30*time.Second), "update", func(r *rand.Rand) { nodes.update(r) })
//			}
//			w.Until(40 * time.Second) // safety: invariants are checked at every step
//			w.Calm()                  // liveness: no more faults
//			w.Until(30 * time.Second)
//			if !nodes.equal() {
//				w.Fail("not equal %v after the faults ended", w.Elapsed())
//			}
//		})
//	}
//
// Run plays many seeds on all processors. When one fails, it takes acts away for as long as the
// history still fails, prints what is left as a story, and says how to play it again.
//
// # Duties of a history
//
// Take time from Now and randomness from Rand, or from the argument of an act, and from nowhere else;
// do not range over maps where the order shows; start no goroutine. Schedule all acts before time
// passes: then taking one away does not change the others. Twice checks that a seed is one history.
package sim
