package sharding

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// formerAfter is how long a region waits for a coordinator before it looks for former holders.
	formerAfter = 250 * time.Millisecond
	// formerRetry is the pause after a lease that could not be read.
	formerRetry = time.Second
)

// observeFormer observes the sessions that hold shards as long as no coordinator has been heard.
// When all members have crashed, the first coordinator begins when the lease of the former one has
// been unchanged for a TTL. If the sessions of the other members were observed only from then on,
// entities would wait for a second TTL. A member that joins others hears their coordinator at once.
func (lh *leaseHolder) observeFormer() {
	observed := map[string]func(){}
	defer func() {
		for _, stop := range observed {
			stop()
		}
	}()
	if !lh.pause(formerAfter) {
		return
	}
	for _, shard := range rand.Perm(lh.l.cfg.Shards) {
		if lh.l.heard.Load() {
			break
		}
		h, err := holder(lh.alive, lh.lease(shard))
		if err != nil {
			if !lh.pause(formerRetry) {
				return
			}
			continue
		}
		if observed[h.Session] != nil || h.Session == "" || h.Session == lh.l.session.ID() {
			continue
		}
		if stop, err := lh.l.session.Observe(h.Session); err == nil {
			observed[h.Session] = stop
		}
	}
	if len(observed) > 0 {
		lh.pause(3 * lh.l.session.TTL()) // by then the shards have been acquired
	}
}

// pause reports whether the control actor still runs after d.
func (lh *leaseHolder) pause(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(lh.alive, d)
	defer cancel()
	<-ctx.Done()
	return lh.alive.Err() == nil
}
