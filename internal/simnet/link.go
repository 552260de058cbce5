package simnet

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Faults are the faults of one direction between two addresses. The zero value has none.
type Faults struct {
	// Cut loses all messages, including those in flight when they would arrive.
	Cut bool
	// Loss and Duplicate are probabilities from 0 to 1, per message.
	Loss, Duplicate float64
	// Delay is added to the latency; Jitter is a random addition below it. Order is kept.
	Delay, Jitter time.Duration
	// Reorder lets messages overtake each other within their jitter, and duplicates arrive later.
	Reorder bool
	// Bandwidth is in bytes per second. Messages that exceed it wait, in a queue without limit. 0
	// means unlimited.
	Bandwidth int
}

// Verdict is what happens to a message when it is sent. A carried message may still be lost when it
// arrives at a cut or at an address without listener.
type Verdict int

// The verdicts.
const (
	Carried Verdict = iota
	LostCut
	LostRandom
	LostOversize
	LostDown // the sender has crashed
	Held     // the sender is frozen: the message is sent when it thaws
)

// Stats counts messages.
type Stats struct {
	Sent      int // attempted
	Delivered int // passed to a system, including duplicates
	Lost      int // by a cut, at random, or for lack of a listener
	Oversize  int // above the largest message carried
	Invalid   int // not protobuf messages, or remote Watch and Stop, which are not carried
	Bytes     int // sent, without invalid ones
}

func (s *Stats) add(o Stats) {
	s.Sent += o.Sent
	s.Delivered += o.Delivered
	s.Lost += o.Lost
	s.Oversize += o.Oversize
	s.Invalid += o.Invalid
	s.Bytes += o.Bytes
}

// Link is the direction from one address to another.
type Link struct {
	net *Net
	dir direction

	mu struct {
		sync.Mutex
		faults Faults
		once   []*once // faults of single messages, each used by the first match
		random *rand.Rand
		last   time.Time // when the last in-order message is due
		free   time.Time // when the bandwidth is free again
		stats  Stats
	}
}

type once struct {
	match  func(Packet) bool
	faults Faults
	hit    atomic.Bool
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

// Change changes the faults. f must not call the link.
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

// Next applies the faults, instead of those of the link, to the next message for which match
// returns true. hit reports whether a message has matched. match must not call the network; nil
// matches every message.
func (l *Link) Next(match func(Packet) bool, f Faults) (hit func() bool) {
	o := &once{match: match, faults: f}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.once = append(l.mu.once, o)
	return o.hit.Load
}

// Stats returns the counters.
func (l *Link) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.stats
}

// carry determines the fate of a message and queues it.
func (l *Link) carry(p Packet, up bool, deliver func(*actor.ActorSystem)) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, f := &l.mu.stats, l.faultsFor(p)
	s.Sent++
	s.Bytes += p.Size
	lost, double := l.mu.random.Float64() < f.Loss, l.mu.random.Float64() < f.Duplicate
	switch {
	case !up:
		s.Lost++
		return LostDown
	case p.Size > l.net.opts.MaxMessage:
		s.Oversize++
		return LostOversize
	case f.Cut || l.mu.faults.Cut:
		s.Lost++
		return LostCut
	case lost:
		s.Lost++
		return LostRandom
	}
	l.enqueue(f, p.Size, deliver)
	if double {
		l.enqueue(f, p.Size, deliver)
	}
	return Carried
}

// faultsFor takes the first matching fault of a single message, or returns those of the link.
func (l *Link) faultsFor(p Packet) Faults {
	for i, o := range l.mu.once {
		if o.match == nil || o.match(p) {
			l.mu.once = slices.Delete(l.mu.once, i, i+1)
			o.hit.Store(true)
			return o.faults
		}
	}
	return l.mu.faults
}

func (l *Link) enqueue(f Faults, size int, deliver func(*actor.ActorSystem)) {
	now := time.Now()
	// The last addend makes arrival times distinct, also across links.
	d := l.net.opts.Latency + f.Delay + l.below(l.net.opts.Jitter) + l.below(
		f.Jitter) + 1 + l.below(time.Microsecond)
	due := now.Add(d)
	if f.Bandwidth > 0 {
		if l.mu.free.Before(now) {
			l.mu.free = now
		}
		l.mu.free = l.mu.free.Add(time.Duration(float64(size) / float64(f.Bandwidth) * float64(
			time.Second)))
		due = l.mu.free.Add(d)
	}
	if !f.Reorder {
		if !due.After(l.mu.last) {
			due = l.mu.last.Add(1)
		}
		l.mu.last = due
	}
	l.net.courier.take(parcel{due: due, link: l, deliver: deliver})
}

func (l *Link) below(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(l.mu.random.Int64N(int64(d)))
}

// arrive delivers a message, or holds it for a frozen host.
func (l *Link) arrive(p parcel) {
	l.mu.Lock()
	cut := l.mu.faults.Cut
	if cut {
		l.mu.stats.Lost++
	}
	l.mu.Unlock()

	if !cut && !l.net.waitAtDoor(l.dir.to, func() { l.handOver(p) }) {
		l.handOver(p)
	}
}

// handOver delivers a message to the current listener.
func (l *Link) handOver(p parcel) {
	to := l.net.listener(l.dir.to)
	l.mu.Lock()
	if to != nil {
		l.mu.stats.Delivered++
	} else {
		l.mu.stats.Lost++
	}
	l.mu.Unlock()
	if to != nil {
		p.deliver(to)
	}
}

// heal ends all faults.
func (l *Link) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.faults, l.mu.once = Faults{}, nil
}

func (l *Link) invalid() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.stats.Sent++
	l.mu.stats.Invalid++
}
