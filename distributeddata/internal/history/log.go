package history

import (
	"slices"

	"github.com/concord-go/concord/internal/causal"
)

// Event is one change of one replica: its effect on each key that it changed. In the log, added
// atoms have no payloads, since those that are still needed are in the state.
type Event struct {
	Dot  causal.Dot
	Keys []KeyChange
	Deps causal.Vector // what the origin had seen before; only when a key is cleared
}

// KeyChange is the effect of an event on one key.
type KeyChange struct {
	Key string
	causal.Change
}

// eventLog keeps, per origin, the events from floor+1 up to what the vector covers [R17].
type eventLog struct {
	origins map[causal.Replica]*originLog
	floor   causal.Vector // of the origins without a log: none of their events is kept
	size    int           // estimated bytes
}

type originLog struct {
	floor  uint64 // events up to this one have been cut, or were never here
	events []Event
	size   int
	cut    uint64  // number of unused slots in front of events
	room   []Event // begins with those slots
}

// The log keeps its memory if a cut, which happens with each heartbeat, leaves at least a quarter
// of it in use or frees that much, and in any case the memory of maxKept events.
const maxKept = 4096

func newEventLog() eventLog { return eventLog{origins: map[causal.Replica]*originLog{}} }

func (l *eventLog) origin(r causal.Replica) *originLog {
	o := l.origins[r]
	if o == nil {
		o = &originLog{floor: l.floor.Get(r)}
		l.origins[r] = o
	}
	return o
}

// add appends an event, which follows the last one of its origin. It takes ownership of the event
// and removes its payloads.
func (l *eventLog) add(e Event) {
	for _, k := range e.Keys {
		for j := range k.Adds {
			k.Adds[j].Payload = ""
		}
	}
	o := l.origin(e.Dot.Replica)
	if len(o.events) == cap(o.events) {
		o.events, o.cut = append(make([]Event, 0, max(16, 2*len(o.events))), o.events...), 0
		o.room = o.events
	}
	o.events = append(o.events, e)
	o.size += e.size()
	l.size += e.size()
}

// from returns the events of r from n on, or false if some of them are no longer here.
func (l *eventLog) from(r causal.Replica, n uint64) ([]Event, bool) {
	o := l.origins[r]
	if o == nil || n <= o.floor {
		return nil, false
	}
	return o.events[n-o.floor-1:], true
}

// cut removes the events of r up to n.
func (l *eventLog) cut(r causal.Replica, n uint64) (events uint64) {
	o := l.origins[r]
	if o == nil {
		return 0
	}
	for ; o.floor < n && len(o.events) > 0; o.floor++ {
		size := o.events[0].size()
		l.size -= size
		o.size -= size
		o.events[0] = Event{}
		o.events = o.events[1:]
		events++
	}
	o.cut += events
	used := uint64(len(o.events))
	switch space := uint64(cap(o.room)); {
	case space > max(maxKept, 4*(used+events)):
		o.events, o.cut = slices.Clone(o.events), 0
		o.room = o.events
	case o.cut > 2*used: // the slots in front are used again
		n := copy(o.room[:used], o.events)
		clear(o.events)
		o.events, o.cut = o.room[:n], 0
	}
	return events
}

// skip records that the events that seen covers beyond before arrived as a snapshot: they are
// covered, but are not in the log [R19].
func (l *eventLog) skip(seen, before causal.Vector) {
	var risen []causal.Dot
	for d := range seen.Beyond(before) {
		risen = append(risen, d)
		if o := l.origins[d.Replica]; o != nil {
			l.size -= o.size
			*o = originLog{floor: d.N}
		}
	}
	if len(risen) == seen.Len() {
		l.floor = l.floor.Join(seen) // shares memory
		return
	}
	l.floor = l.floor.Join(causal.MakeVector(risen...))
}

// fit makes the log end where seen does. An interrupted transition may have added or skipped events
// without being installed.
func (l *eventLog) fit(seen causal.Vector) {
	l.size = 0
	for r, o := range l.origins {
		n, end := seen.Get(r), o.floor+uint64(len(o.events))
		if end < n || o.floor > n {
			*o = originLog{floor: n}
		}
		for ; end > n && len(o.events) > 0; end-- {
			last := len(o.events) - 1
			o.size -= o.events[last].size()
			o.events[last] = Event{}
			o.events = o.events[:last]
		}
		l.size += o.size
	}
	l.floor = seen
}

// retire drops the origins for which gone returns true, if none of their events is kept.
func (l *eventLog) retire(gone func(causal.Replica) bool) {
	var floors []causal.Dot
	for r, o := range l.origins {
		if len(o.events) == 0 && gone(r) {
			floors = append(floors, causal.Dot{Replica: r, N: o.floor})
			delete(l.origins, r)
		}
	}
	l.floor = l.floor.Join(causal.MakeVector(floors...))
}

// size estimates the memory of an event in the log.
func (e Event) size() int {
	n := 48 + 16*min(e.Deps.Len(), 128) // more are shared
	for _, k := range e.Keys {
		n += k.size()
	}
	return n
}

func (k KeyChange) size() int {
	n := 96 + len(k.Key) + 80*len(k.Marks)
	for _, a := range k.Adds {
		n += 48 + len(a.Path)
	}
	for _, a := range k.Removes {
		n += 48 + len(a.Path)
	}
	return n
}

// largest returns the origin with the largest part of the log, and the middle of that part.
func (l *eventLog) largest() (middle causal.Dot, ok bool) {
	size := 0
	for r, o := range l.origins {
		if o.size > size || o.size == size && size > 0 && r < middle.Replica {
			size = o.size
			middle = causal.Dot{Replica: r, N: o.floor + uint64(len(o.events)+1)/2}
		}
	}
	return middle, size > 0
}
