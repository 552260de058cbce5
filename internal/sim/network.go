package sim

import "time"

// Faults are the faults of messages.
type Faults struct {
	Loss, Duplicate float64       // probabilities
	Delay, Jitter   time.Duration // a message takes Delay and a random part of Jitter
	Late            float64       // probability that a message takes longer
	Lateness        time.Duration // maximum additional time
}

type link struct{ from, to int }

// path is the state of a link.
type path struct {
	sent moments
	cuts int
}

// fate determines how much longer than Delay each copy of a message takes. A message without copies
// is lost.
type fate struct {
	copies int
	extra  [2]time.Duration
}

// plain is the fate of a message without faults.
var plain = fate{copies: 1}

func (w *World) path(l link) *path {
	p := w.links[l]
	if p == nil {
		p = &path{}
		w.links[l] = p
	}
	return p
}

// Send sends a message from one place to another. deliver runs when it arrives: once, never, or
// twice. A cut made while the message is in flight loses it too. The message value is used only for
// observers and the story; it should have a String method that describes it completely.
func (w *World) Send(from, to int, msg any, deliver func()) {
	if w.trace != nil {
		w.Note("%d → %d: %v", from, to, msg)
	}
	for _, see := range w.observe {
		see(from, to, msg)
	}
	l := link{from, to}
	p := w.path(l)
	f := w.fate(letter{l, p.sent.next(w.now)})
	arrive := func() {
		if p.cuts == 0 {
			deliver()
		}
	}
	for i := range f.copies {
		w.After(w.Delay+f.extra[i], arrive)
	}
}

// fate determines the fate of a message.
func (w *World) fate(l letter) fate {
	f := plain
	switch {
	case w.branch != nil:
		if !w.calm {
			f = w.branch.fate(w.Faults)
		}
	case w.given == nil:
		f = w.chanceFate(l)
	default:
		if g, ok := w.given.fates[l]; ok {
			f = g
		}
	}
	if w.tape != nil && f != plain {
		w.tape.fates[l] = f
	}
	return f
}

func (w *World) chanceFate(l letter) fate {
	x := mix(w.seed, uint64(l.from)<<32|uint64(uint32(l.to)), uint64(l.at), uint64(l.n))
	next := func() uint64 { x = splitmix(x); return x }
	f := plain
	if !w.calm {
		if w.Loss > 0 && unit(next()) < w.Loss {
			return fate{}
		}
		if w.Duplicate > 0 && unit(next()) < w.Duplicate {
			f.copies = 2
		}
	}
	for i := range f.copies {
		if us := uint64(w.Jitter / time.Microsecond); us > 0 {
			f.extra[i] = time.Duration(next()%us) * time.Microsecond
		}
		if !w.calm && w.Late > 0 && unit(next()) < w.Late {
			f.extra[i] += time.Duration(
				unit(next())*float64(w.Lateness/time.Microsecond)) * time.Microsecond
		}
	}
	return f
}

// Cut loses all messages from one place to another until Mend was called as often as Cut.
func (w *World) Cut(from, to int) { w.path(link{from, to}).cuts++ }

// Mend reverts one Cut.
func (w *World) Mend(from, to int) {
	p := w.path(link{from, to})
	p.cuts = max(0, p.cuts-1)
}

// IsCut reports whether all messages from one place to another are lost.
func (w *World) IsCut(from, to int) bool { return w.path(link{from, to}).cuts > 0 }

// Calm ends all faults: messages take only their delay. Lost messages stay lost.
func (w *World) Calm() {
	w.calm = true
	for _, p := range w.links {
		p.cuts = 0
	}
}

// IsCalm reports whether Calm has been called.
func (w *World) IsCalm() bool { return w.calm }
