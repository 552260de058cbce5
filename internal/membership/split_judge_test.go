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
		case o.last.cause != nil && o.last.cause != ErrDropped:
			between++
		}
	}
	if others == 0 && between > 0 {
		w.Fail("%s gives way while nobody has a life", l.id)
	}
	w.judgeGiver(l, e)
}

// judgeGiver checks that givers of permits stay until those that went are back, and are asked by
// few at once.
func (w *world) judgeGiver(l *life, e ending) {
	sharing := 1
	for _, o := range w.places {
		if o.life != nil || o.last.giver == 0 || e.at-o.last.at > 24*time.Second {
			continue
		}
		if o.last.giver == l.core.incarnation {
			w.Fail("%s gives way although it promised %s to stay", l.id, w.addressOf(o.i))
		}
		if o.last.giver == e.giver {
			sharing++
		}
	}
	for _, o := range w.running() {
		if o.core.incarnation == e.giver && sharing > (len(o.core.view.Members)+3)/4 {
			w.Fail("%d at once have gone with permits of %s, which lists %d", sharing, o.id, len(o.core.view.Members))
		}
	}
}
