// Package sim plays seeded histories of deterministic state machines in virtual time.
//
// A history is a function of a [World]. It chooses sizes and faults, starts the machines under
// test, generates acts, lets time pass, and calls Fail if an invariant is broken. One seed
// determines one history.
//
//	var seeds = sim.Flags(1000) // -seed, -seeds, -progress, -save
//
//	func TestHistories(t *testing.T) { sim.Run(t, *seeds, history) }
//
//	func history(w *sim.World) {
//		nodes := start(w, w.Number("members", 3, 5))                   // swarm: each seed has other sizes
//		w.Faults = sim.Faults{Loss: w.Fraction("loss", 0.3), Delay: 10 * time.Millisecond} // and faults
//		w.Can("write", func(a sim.Args) { nodes.write(a.Int(0, 5), a.Word(1)) })
//		for range 50 {
//			w.Act(w.Moment(30*time.Second), "write", w.Rand().IntN(5), "x")
//		}
//		w.Always("one leader", nodes.oneLeader)                        // after every step
//		w.Until(40 * time.Second)                                      // safety: under faults
//		w.Calm()
//		w.Eventually(30*time.Second, "equal", nodes.equal)             // liveness: without
//	}
//
// Run plays many seeds on all processors. If one fails, Run records its history as a [Case], which
// needs no seed, and removes everything that is not needed for the failure. It prints the rest as a
// story, with the commit and the command that reproduces it. With -save the case is written to a
// file, and Replay plays all files of a folder from then on.
//
// # Exploring
//
// Explore plays histories systematically instead of randomly: all histories with at most a given
// number of deviations from the harmless one, in which each Number and Span is the smallest, each
// Chance is false and every message arrives. It is for small histories in which a combination of
// two or three rare choices must certainly be found. With Visited it skips the continuations of
// states it has already reached; then it can play all histories of a small world, however long they
// are.
//
// # Duties of a history
//
// Get the time from Now, and all random choices from Number, Span, Chance, Fraction and Send.
// Generate acts from Rand, before time passes, and describe them completely in their words. Do not
// range over maps where the order matters, and start no goroutines. Seeds.Twice checks that a seed
// determines one history.
package sim
