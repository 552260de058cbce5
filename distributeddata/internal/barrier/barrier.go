// Package barrier holds the outputs of a replica until its disk has the state of the moment at
// which they were made [R46]. It does not know what the outputs are, nor what the disk writes.
//
// The owner forms moments, each with all changes since the one before, and says when the disk has
// saved one. An output that may reveal the present state waits for the moment of that state, which
// may be the next one.
package barrier

import (
	"slices"
	"time"
)

// Moment is the number of a state that the disk holds, or will hold.
type Moment uint64

// MaxBytes bounds the outputs that wait; further ones with a size are dropped, as a network may do.
const MaxBytes = 64 << 20

// Barrier is what waits, in order. The zero value holds nothing, and no moment has been formed.
type Barrier[E any] struct {
	formed, saved Moment
	held          []held[E]
	bytes         int
	until         time.Time // the earliest deadline; zero: none
}

type held[E any] struct {
	output E
	moment Moment
	size   int
	until  time.Time // zero: it waits for as long as it takes
}

// Form records that a moment has been formed, which the disk is to save.
func (b *Barrier[E]) Form() { b.formed++ }

// Save records that the disk holds the next moment.
func (b *Barrier[E]) Save() { b.saved++ }

// Next returns the moment that will be formed next.
func (b *Barrier[E]) Next() Moment { return b.formed + 1 }

// Present returns the moment of the present state; unsaved says that it differs from the last one
// that was formed.
func (b *Barrier[E]) Present(unsaved bool) Moment {
	if unsaved {
		return b.Next()
	}
	return b.formed
}

// Has reports whether the disk holds a moment.
func (b *Barrier[E]) Has(m Moment) bool { return m <= b.saved }

// Hold makes an output wait for a moment. Moments never fall from one call to the next. An output
// without a size is never dropped. until is when Late returns it at the latest, if it is set.
func (b *Barrier[E]) Hold(output E, m Moment, size int, until time.Time) {
	if size > 0 && b.bytes+size > MaxBytes {
		return
	}
	b.bytes += size
	b.by(until)
	b.held = append(b.held, held[E]{output, m, size, until})
}

func (b *Barrier[E]) by(until time.Time) {
	if !until.IsZero() && (b.until.IsZero() || until.Before(b.until)) {
		b.until = until
	}
}

// Until returns the earliest deadline of what waits, or the zero time.
func (b *Barrier[E]) Until() time.Time { return b.until }

// Release returns, in order, the outputs whose moments the disk holds.
func (b *Barrier[E]) Release() (out []E) {
	i := 0
	for ; i < len(b.held) && b.Has(b.held[i].moment); i++ {
		b.bytes -= b.held[i].size
		out = append(out, b.held[i].output)
	}
	clear(b.held[:i])
	if b.held = b.held[i:]; len(b.held) == 0 {
		b.held = nil
	}
	return out
}

// Late returns the outputs whose deadlines have passed; they wait no longer.
func (b *Barrier[E]) Late(now time.Time) (out []E) {
	if b.until.IsZero() || now.Before(b.until) {
		return nil
	}
	b.until = time.Time{}
	b.held = slices.DeleteFunc(b.held, func(h held[E]) bool {
		if !h.until.IsZero() && !now.Before(h.until) {
			b.bytes -= h.size
			out = append(out, h.output)
			return true
		}
		b.by(h.until)
		return false
	})
	return out
}

// Outputs returns what waits.
func (b *Barrier[E]) Outputs() []E {
	out := make([]E, len(b.held))
	for i, h := range b.held {
		out[i] = h.output
	}
	return out
}

// Clear returns what waits, which waits no longer.
func (b *Barrier[E]) Clear() []E {
	out := b.Outputs()
	b.held, b.bytes, b.until = nil, 0, time.Time{}
	return out
}
