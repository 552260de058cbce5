package simnet

import (
	"container/heap"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// courier delivers the messages of all links at their due times, from one goroutine. A new
// goroutine for each message would spend most of its time growing its stack.
type courier struct {
	wake chan struct{} // something is due earlier than before, or the courier was closed
	done chan struct{} // closed when the goroutine has ended

	mu struct {
		sync.Mutex
		queue   parcels
		count   uint64
		running bool
		over    bool
	}
}

type parcel struct {
	due     time.Time
	number  uint64 // in order of sending
	link    *Link
	deliver func(*actor.ActorSystem)
}

func newCourier() *courier {
	return &courier{wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// take queues a message.
func (c *courier) take(p parcel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.over {
		return
	}
	if !c.mu.running {
		c.mu.running = true
		go c.run()
	}
	c.mu.count++
	p.number = c.mu.count
	heap.Push(&c.mu.queue, p)
	if c.mu.queue[0].number == p.number {
		c.rouse()
	}
}

func (c *courier) rouse() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *courier) run() {
	defer close(c.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p, wait, over := c.next()
		switch {
		case over:
			return
		case wait <= 0:
			p.link.arrive(p)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-c.wake:
		}
	}
}

// next returns the next due message, or the time to wait for it.
func (c *courier) next() (p parcel, wait time.Duration, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.over {
		return p, 0, true
	}
	if len(c.mu.queue) == 0 {
		return p, time.Hour, false
	}
	if wait = time.Until(c.mu.queue[0].due); wait <= 0 {
		p = heap.Pop(&c.mu.queue).(parcel)
	}
	return p, wait, false
}

// flying returns the number of messages in flight, and when the first one is due.
func (c *courier) flying() (due time.Time, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = len(c.mu.queue); n > 0 {
		due = c.mu.queue[0].due
	}
	return due, n
}

// close ends all deliveries, and waits for one in progress.
func (c *courier) close() {
	c.mu.Lock()
	c.mu.over, c.mu.queue = true, nil
	running := c.mu.running
	c.mu.Unlock()
	c.rouse()
	if running {
		<-c.done
	}
}

// parcels is a heap by due, then order of sending.
type parcels []parcel

func (q parcels) Len() int { return len(q) }

func (q parcels) Less(i, j int) bool {
	if !q[i].due.Equal(q[j].due) {
		return q[i].due.Before(q[j].due)
	}
	return q[i].number < q[j].number
}

func (q parcels) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *parcels) Push(p any) { *q = append(*q, p.(parcel)) }

func (q *parcels) Pop() any {
	old := *q
	p := old[len(old)-1]
	old[len(old)-1] = parcel{}
	*q = old[:len(old)-1]
	return p
}
