package membership

import (
	"errors"
	"time"
)

// judge checks the end of a life against the rules of permits.
func (w *world) judge(l *life, e ending) {
	if errors.Is(e.cause, ErrDropped) {
		return // its own provider says so
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
		case o.life != nil:
			others++
		case o.last.cause != nil && !errors.Is(o.last.cause, ErrDropped):
			between++
		}
	}
	if others == 0 && between > 0 {
		w.Fail("%s gives way while nobody has a life", l.id)
	}
	w.judgeGiver(l, e)
}

// judgeGiver checks that givers of permits stay until those that went are back.
func (w *world) judgeGiver(l *life, e ending) {
	for _, o := range w.places {
		if w.waitsFor(l, o, e.at) {
			w.Fail("%s gives way although it promised %s to stay", l.id, w.addressOf(o.i))
		}
	}
}

// waitsFor tells whether the process at o has gone with a permit of l, and may be back in time.
func (w *world) waitsFor(l *life, o *place, now time.Duration) bool {
	return o.life == nil && o.last.giver == l.core.incarnation && now-o.last.at <= 24*time.Second
}

// judgePermit checks that few are waited for at once by one member.
func (w *world) judgePermit(l *life) {
	gone := 1 // the one that is permitted to go now
	for _, o := range w.places {
		if w.waitsFor(l, o, w.Elapsed()) {
			gone++
		}
	}
	if n := len(l.core.seen.Members); gone > (n+3)/4 {
		w.Fail("%d at once have gone with permits of %s, which lists %d", gone, l.id, n)
	}
}
