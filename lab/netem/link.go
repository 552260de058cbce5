package netem

import (
	"container/heap"
	"math/rand/v2"
	"sync"
	"time"
)

// Link configures the faults of one direction between two nodes. The zero value passes all packets
// immediately.
type Link struct {
	Delay     time.Duration // of each packet
	Jitter    time.Duration // maximum addition to Delay: packets overtake each other
	Loss      float64       // probability
	Duplicate float64
	Corrupt   float64 // one bit beyond the IP header is flipped
	Rate      int     // bytes per second; 0: no limit. After a second's wait packets are lost
	Cut       bool    // nothing passes
}

// wire carries packets in one direction.
type wire struct {
	to func(packet []byte)

	mu      sync.Mutex
	link    Link
	free    time.Time // when the next packet may leave, under Rate
	seq     uint64
	waiting packets
	news    chan struct{} // buffered, with capacity one
}

func newWire(to func([]byte)) *wire { return &wire{to: to, news: make(chan struct{}, 1)} }

func (w *wire) set(l Link) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.link, w.free = l, time.Time{}
}

// longest is the maximum time a packet waits because of Rate.
const longest = time.Second

// take applies the faults to a packet; it owns the bytes.
func (w *wire) take(packet []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, now := w.link, time.Now()
	if l.Cut || chance(l.Loss) {
		return
	}
	due := now
	if l.Rate > 0 {
		if due = later(now, w.free); due.Sub(now) > longest {
			return
		}
		due = due.Add(time.Duration(len(packet)) * time.Second / time.Duration(l.Rate))
		w.free = due
	}
	if chance(l.Corrupt) {
		corrupt(packet)
	}
	copies := 1
	if chance(l.Duplicate) {
		copies = 2
	}
	for range copies {
		at := due.Add(l.Delay)
		if l.Jitter > 0 {
			at = at.Add(rand.N(l.Jitter))
		}
		w.seq++
		heap.Push(&w.waiting, queued{at, w.seq, packet})
	}
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// run delivers packets when they are due, until done is closed.
func (w *wire) run(done <-chan struct{}) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(w.deliver())
		select {
		case <-w.news:
		case <-timer.C:
		case <-done:
			return
		}
	}
}

// deliver delivers all due packets, and returns the time until the next one.
func (w *wire) deliver() time.Duration {
	for {
		w.mu.Lock()
		if len(w.waiting) == 0 {
			w.mu.Unlock()
			return time.Hour
		}
		if wait := time.Until(w.waiting[0].at); wait > 0 {
			w.mu.Unlock()
			return wait
		}
		q := heap.Pop(&w.waiting).(queued)
		w.mu.Unlock()
		w.to(q.packet)
	}
}

func chance(p float64) bool { return p > 0 && rand.Float64() < p }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

const ipHeader = 20

// corrupt flips one bit of the IP payload.
func corrupt(packet []byte) {
	if n := len(packet) - ipHeader; n > 0 {
		packet[ipHeader+rand.IntN(n)] ^= 1 << rand.IntN(8)
	}
}

type queued struct {
	at     time.Time
	seq    uint64
	packet []byte
}

type packets []queued

func (q packets) Len() int { return len(q) }
func (q packets) Less(i, j int) bool {
	return q[i].at.Before(q[j].at) || q[i].at.Equal(q[j].at) && q[i].seq < q[j].seq
}
func (q packets) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *packets) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *packets) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
