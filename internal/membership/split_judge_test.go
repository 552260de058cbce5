package membership

import (
	"errors"
	"time"
)

// judge checks the end of an incarnation against the rules of permits.
func (w *world) judge(l *process, e ending) {
	if errors.Is(e.cause, ErrDropped) {
		return // its own provider dropped it
	}
	p := l.permit
	switch {
	case p == nil:
		w.Fail("%s ends without a permit", l.id)
		return
	case w.yields[request{id: l.id, incarnation: p.from, sequence: p.hello.permit}] == 0:
		w.Fail("%s ends with a permit that it did not ask for", l.id)
	}
	others, between := 0, 0
	for _, o := range w.places {
		switch {
		case o == l.p:
		case o.incarnation != nil:
			others++
		case o.last.cause != nil && !errors.Is(o.last.cause, ErrDropped):
			between++
		}
	}
	if others == 0 && between > 0 {
		w.Fail("%s steps down while nobody runs", l.id)
	}
	w.judgeGiver(l, e)
}

// judgeGiver checks that givers of permits stay until the members that left have rejoined.
func (w *world) judgeGiver(l *process, e ending) {
	for _, o := range w.places {
		if w.waitsFor(l, o, e.at) {
			w.Fail("%s steps down although it promised %s to stay", l.id, w.addressOf(o.i))
		}
	}
}

// waitsFor reports whether the process at o has left with a permit of l, and may rejoin in time.
func (w *world) waitsFor(l *process, o *place, now time.Duration) bool {
	return o.incarnation == nil && o.last.giver == l.core.incarnation &&
		now-o.last.at <= 24*time.Second
}

// judgePermit checks that one member waits for only a few others at a time.
func (w *world) judgePermit(l *process) {
	gone := 1 // the one that may leave now
	for _, o := range w.places {
		if w.waitsFor(l, o, w.Elapsed()) {
			gone++
		}
	}
	if n := len(l.core.seen.Members); gone > max(min(n, 4), (n+3)/4) {
		w.Fail("%d at once have gone with permits of %s, which lists %d", gone, l.id, n)
	}
}
