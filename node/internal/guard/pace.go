package guard

import (
	"context"
	"sync"
	"time"
)

// paces holds the pace of each peer that has a stream: all streams of a peer share one.
type paces struct {
	rate int
	mu   sync.Mutex
	all  map[string]*pace // by address
}

// of returns the pace of a peer, for one more stream.
func (ps *paces) of(address string) *pace {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.all[address]
	if p == nil {
		p = &pace{rate: ps.rate, peer: address}
		ps.all[address] = p
	}
	p.streams++
	return p
}

// done releases the pace at the end of a stream.
func (ps *paces) done(p *pace) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.streams--; p.streams == 0 {
		delete(ps.all, p.peer)
	}
}

// pace limits how fast the messages of one peer are passed on. A peer that sends faster is slowed
// down by the flow control of its connection; nothing is dropped.
type pace struct {
	rate    int // units a second; 0: no limit
	peer    string
	streams int // guarded by the mutex of paces

	mu   sync.Mutex
	free time.Time // when all units taken until now are paid for
}

// burst is how much time a peer can save up while it sends less.
const burst = 50 * time.Millisecond

// unit is the number of bytes that count as much as one message.
const unit = 1 << 10

// take takes the units of a batch at time now, and returns how long the batch must wait.
func (p *pace) take(now time.Time, messages, bytes int) time.Duration {
	if p.rate == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if saved := now.Add(-burst); p.free.Before(saved) {
		p.free = saved
	}
	p.free = p.free.Add(time.Duration(messages+bytes/unit) * time.Second / time.Duration(p.rate))
	return p.free.Sub(now)
}

// wait takes the units of a batch, and waits as long as it must, or until ctx ends.
func (p *pace) wait(ctx context.Context, messages, bytes int) error {
	d := p.take(time.Now(), messages, bytes)
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
