package coordination

import (
	"container/heap"
	"time"
)

// wakes is a heap of the drivers whose machines want a tick, earliest first.
type wakes struct{ order wakeOrder }

// note records when the machine of a driver wants its next tick, if it wants one.
func (w *wakes) note(d *driver) {
	at, wanted := d.machine.Wake()
	switch {
	case wanted && d.place > 0:
		d.wake = at
		heap.Fix(&w.order, d.place-1)
	case wanted:
		d.wake = at
		heap.Push(&w.order, d)
	case d.place > 0:
		heap.Remove(&w.order, d.place-1)
	}
}

// next returns the time of the earliest tick.
func (w *wakes) next() (at time.Duration, ok bool) {
	if len(w.order) == 0 {
		return 0, false
	}
	return w.order[0].wake, true
}

// due removes and returns the drivers whose time has come. Their next step adds them again.
func (w *wakes) due(now time.Duration) (due []*driver) {
	for at, ok := w.next(); ok && at <= now; at, ok = w.next() {
		due = append(due, heap.Pop(&w.order).(*driver))
	}
	return due
}

// wakeOrder is a heap. Each driver knows its position in it, counted from 1.
type wakeOrder []*driver

func (o wakeOrder) Len() int           { return len(o) }
func (o wakeOrder) Less(i, j int) bool { return o[i].wake < o[j].wake }

func (o wakeOrder) Swap(i, j int) {
	o[i], o[j] = o[j], o[i]
	o[i].place, o[j].place = i+1, j+1
}

func (o *wakeOrder) Push(x any) {
	d := x.(*driver)
	*o = append(*o, d)
	d.place = len(*o)
}

func (o *wakeOrder) Pop() any {
	last := len(*o) - 1
	d := (*o)[last]
	*o, d.place = (*o)[:last], 0
	return d
}
