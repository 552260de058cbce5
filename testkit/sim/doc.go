// Package sim plays seeded histories of deterministic state machines in virtual time.
//
// A history is a function of a [World]: it picks sizes and faults, starts the machines under test, makes up
// acts, lets time pass, and calls Fail when an invariant is broken. One seed is one history.
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
// Run plays many seeds on all processors. When one fails, its history is written down as a [Case], which
// needs no seed; everything is left out of it that it fails without; and what remains is told as a story,
// with the commit and the command that shows it again. With -save it becomes a file, and Replay plays all
// files of a folder for ever.
//
// # Exploring
//
// Explore plays the same kind of history in another order: not at random, but every one with at most so many
// deviations from the harmless one, in which each Number and Span is the smallest, no Chance comes true and every
// message arrives. That is for small histories, in which a combination of two or three rare choices is to be
// found for certain. With Visited it leaves out what follows from a state that it has been in; then all
// histories of a small world can be played, however long they are.
//
// # Duties of a history
//
// Take time from Now, and everything left to chance from Number, Span, Chance, Fraction and Send; make up
// acts from Rand, before time passes, and say all about them in their words. Do not range over maps where
// the order shows; start no goroutine. Seeds.Twice checks that a seed is one history.
package sim
