package sharding

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/concord-go/concord/internal/membership"
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

// count records how many shards the members have that are not in the next view.
func (c *control) count(next *membership.View) {
	if c.view == nil {
		return
	}
	had := map[string]int{}
	for _, m := range c.view.Members {
		o, ok := next.Find(m.ID)
		if m.Incarnation != 0 && (!ok || o.Incarnation != m.Incarnation) {
			had[m.Address] = 0
		}
	}
	if len(had) == 0 {
		return
	}
	for n := range c.binding.shards {
		host := c.region.Host(n).Address
		if _, gone := had[host]; gone {
			had[host]++
		}
	}
	if was := c.binding.had.Load(); was != nil && len(*was) < maxMembers {
		for address, n := range *was { // one fault may change the view several times
			if _, again := had[address]; !again {
				had[address] = n
			}
		}
	}
	c.binding.had.Store(&had)
}

// hosted describes the shards of members when they left the view.
func (l *binding) hosted(addresses []string) string {
	had, n := l.had.Load(), 0
	for _, address := range addresses {
		if had != nil {
			n += (*had)[address]
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "1 shard of " + l.cfg.Type
	}
	return fmt.Sprintf("%d shards of %s", n, l.cfg.Type)
}
