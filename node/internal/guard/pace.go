package guard

import (
	"context"
	"time"
)

// pace limits how fast the messages of one peer are passed on. A peer that sends faster is slowed
// down by the flow control of its connection; nothing is dropped. It is used by one goroutine.
type pace struct {
	rate int       // units a second; 0: no limit
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
