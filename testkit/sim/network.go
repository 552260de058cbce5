package sim

import "time"

// Faults are what happens to messages.
type Faults struct {
	Loss, Duplicate float64       // probabilities
	Delay, Jitter   time.Duration // each message takes Delay and a random part of Jitter: they overtake each other
}

type link struct{ from, to int }

// Send carries a message from one place to another: deliver runs when it arrives, never, or twice. A cut
// that is made while it is on its way loses it too.
func (w *World) Send(from, to int, deliver func()) {
	copies := 1
	if !w.calm && w.rand.Float64() < w.Duplicate {
		copies = 2
	}
	for range copies {
		if !w.calm && w.rand.Float64() < w.Loss {
			continue
		}
		delay := w.Delay
		if w.Jitter > 0 {
			delay += time.Duration(w.rand.Int64N(int64(w.Jitter)))
		}
		w.After(delay, func() {
			if w.cut[link{from, to}] == 0 {
				deliver()
			}
		})
	}
}

// Cut loses everything from one place to another, until as many calls of Mend.
func (w *World) Cut(from, to int) { w.cut[link{from, to}]++ }

// Mend takes back one Cut.
func (w *World) Mend(from, to int) {
	if l := (link{from, to}); w.cut[l] > 0 {
		w.cut[l]--
	}
}

// Calm ends all faults: messages only take their time. What was lost stays lost.
func (w *World) Calm() {
	w.calm = true
	clear(w.cut)
}

// IsCalm reports whether Calm has been called.
func (w *World) IsCalm() bool { return w.calm }
