package core

import (
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/internal/outbox"
	"github.com/concord-go/concord/distributeddata/internal/waiting"
	"github.com/concord-go/concord/internal/wire"
)

// pushes are the own events that are to be pushed, and how they are encoded.
type pushes struct {
	outbox.Outbox
	enc    encoder
	events []history.DeltaEvent // of a push
}

// due returns the time at which the gathered own events must be pushed.
func (o *pushes) due(now time.Time, w *waiting.Calls[Level, task], ps peers) time.Time {
	return o.Due(now, o.hurry(w), ps.pushing)
}

// hurry reports whether a call waits for the next push.
func (o *pushes) hurry(w *waiting.Calls[Level, task]) bool {
	for g := range w.All() {
		if first, last := g.Range(); o.Hurries(first, last) {
			return true
		}
	}
	return false
}

// push sends the own events that have not been pushed to every member, once, as one delta
// [R8]. A member that the push does not reach, or that has too many unacknowledged bytes, sees the
// gap at the next heartbeat and requests the events.
//
// Own events are gathered until the next input that is not an update. That is a Wake at the latest,
// which NextWake requests at once if nothing has been pushed for a Pause, if the last push had
// few events and all members have acknowledged it, or if a call waits for other members and no call
// of its level waits for a push before the last one. A burst of updates is thus one message per
// member, without atoms that were added and removed within it [R9]. Until own events are pushed,
// no foreign event is applied and nothing is sent that another replica may apply. All events of the
// push therefore follow the same events, and no replica has only some of them.
func (o *pushes) push(h herald, ps peers) {
	n := h.history.Own()
	from, some := o.Begin(h.now, n)
	if !some {
		return
	}
	events, ok := h.history.Events(h.Replica(), from+1)
	if !ok || !slices.ContainsFunc(ps, func(p *peer) bool { return p.replica != 0 }) {
		return
	}
	o.Sent(len(events))
	d := o.delta(h, events, from, n)
	payload := o.enc.push(&d, h.history.Keys(), h.bases.Own())
	clear(d.Events)
	if o.events = d.Events[:0]; cap(o.events) > maxEvents {
		o.events = nil
	}
	for _, p := range ps {
		switch {
		case p.replica == 0:
		case len(payload) > wire.MaxPayload:
			h.sendBeat(p) // shows the gap; the events are then requested and sent in parts
		case p.inFlight+len(payload) <= h.cfg.PushBytes:
			p.inFlight += len(payload)
			p.pushed = append(p.pushed, sent{n, len(payload)})
			h.send(p, wire.ReplicatorPush, payload)
		}
	}
}

// maxEvents is the largest number of events for which the buffer of a push is kept.
const maxEvents = 4096

// delta returns own events as a delta.
func (o *pushes) delta(h herald, events []history.Event, from, n uint64) history.Delta {
	d := history.Delta{Head: o.Causes(h.Replica(), n, h.Seen()), Events: o.events[:0]}
	d.Base = d.Head.Set(h.Replica(), from)
	d.Origin, d.Hashes = h.Replica(), h.history.OwnHashes(from, len(events))
	for _, e := range events {
		d.Events = append(d.Events, history.DeltaEvent{Event: e})
	}
	return d
}
