package simnet

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Faults of one direction between two addresses. The zero value is none.
type Faults struct {
	// Cut loses everything, also what is on its way when it would arrive.
	Cut bool
	// Loss and Duplicate are probabilities from 0 to 1, per message.
	Loss, Duplicate float64
	// Delay is added to the latency; Jitter is a random addition below it.
	Delay, Jitter time.Duration
	// Reorder lets messages overtake each other within their jitter, and duplicates come later.
	Reorder bool
}

// Verdict is what happens to a message when it is sent. What is carried may still be lost when it
// arrives at a cut or where nobody listens.
type Verdict int

// Verdicts.
const (
	Carried Verdict = iota
	LostCut
	LostRandom
	LostOversize
	LostDown // the sender has crashed
)

// Stats counts messages.
type Stats struct {
	Sent      int // tried
	Delivered int // given to a system; duplicates count
	Lost      int // by a cut, at random, or since nobody listened
	Oversize  int
	Invalid   int // not serialisable, or remote Watch and Stop, which are not carried
	Bytes     int // sent, without those invalid
}

func (s *Stats) add(o Stats) {
	s.Sent += o.Sent
	s.Delivered += o.Delivered
	s.Lost += o.Lost
	s.Oversize += o.Oversize
	s.Invalid += o.Invalid
	s.Bytes += o.Bytes
}

// Link is the direction from one address to another. It keeps the order of messages by one queue:
// every timer takes out the message that is due first, whichever it was started for.
type Link struct {
	net *Net
	dir direction

	delivering sync.Mutex // one delivery at a time

	mu struct {
		sync.Mutex
		faults Faults
		random *rand.Rand
		queue  []parcel // by due, then order of sending
		stats  Stats
	}
}

type parcel struct {
	due     time.Time
	deliver func(*actor.ActorSystem)
}

func newLink(n *Net, d direction) *Link {
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.from + "\x00" + d.to))
	l := &Link{net: n, dir: d}
	l.mu.random = rand.New(rand.NewPCG(n.opts.Seed, h.Sum64()))
	return l
}

// Set replaces the faults.
func (l *Link) Set(f Faults) { l.Change(func(old *Faults) { *old = f }) }

// Change changes the faults. It must not call the link.
func (l *Link) Change(f func(*Faults)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.mu.faults)
}

// Faults returns the faults.
func (l *Link) Faults() Faults {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.faults
}

// Stats returns the counters.
func (l *Link) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.stats
}

// carry decides what happens to a message and queues it.
func (l *Link) carry(size int, up bool, deliver func(*actor.ActorSystem)) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, f := &l.mu.stats, l.mu.faults
	s.Sent++
	s.Bytes += size
	lost, double := l.mu.random.Float64() < f.Loss, l.mu.random.Float64() < f.Duplicate
	switch {
	case !up:
		s.Lost++
		return LostDown
	case size > l.net.opts.MaxMessage:
		s.Oversize++
		return LostOversize
	case f.Cut:
		s.Lost++
		return LostCut
	case lost:
		s.Lost++
		return LostRandom
	}
	l.enqueue(f, deliver)
	if double {
		l.enqueue(f, deliver)
	}
	return Carried
}

func (l *Link) enqueue(f Faults, deliver func(*actor.ActorSystem)) {
	now := time.Now()
	// The last part makes moments of arrival distinct, across links too.
	d := l.net.opts.Latency + f.Delay + l.below(l.net.opts.Jitter) + l.below(f.Jitter) + 1 + l.below(time.Microsecond)
	due := now.Add(d)
	if n := len(l.mu.queue); n > 0 && !f.Reorder {
		if last := l.mu.queue[n-1].due; !due.After(last) {
			due = last.Add(1)
		}
	}
	i, _ := slices.BinarySearchFunc(l.mu.queue, due, func(p parcel, due time.Time) int {
		if p.due.After(due) {
			return 1
		}
		return -1
	})
	l.mu.queue = slices.Insert(l.mu.queue, i, parcel{due, deliver})
	time.AfterFunc(due.Sub(now), l.arrive)
}

func (l *Link) below(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(l.mu.random.Int64N(int64(d)))
}

// arrive delivers the message that is due first. Delivery may send over other links, never waits for
// this one, and holds no lock that sending takes.
func (l *Link) arrive() {
	l.delivering.Lock()
	defer l.delivering.Unlock()
	to := l.net.listener(l.dir.to)

	l.mu.Lock()
	p := l.mu.queue[0]
	l.mu.queue = slices.Delete(l.mu.queue, 0, 1)
	ok := to != nil && !l.mu.faults.Cut
	if ok {
		l.mu.stats.Delivered++
	} else {
		l.mu.stats.Lost++
	}
	l.mu.Unlock()

	if ok {
		p.deliver(to)
	}
}

func (l *Link) invalid() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.stats.Sent++
	l.mu.stats.Invalid++
}
