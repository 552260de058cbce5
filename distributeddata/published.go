package distributeddata

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/membership"
)

// published is the state as readers see it: of one instant, and immutable. All that is asked of it may be asked
// of nil, which holds nothing.
type published struct {
	half             // of the volatile keys
	durable  *half   // nil without Config.Durable
	choice   *choice // of the durable keys
	ttls     *lifetimes
	members  int              // in view, this one included
	unloaded error            // why the rows of the durable keys cannot be used
	others   []string         // addresses of those that list other durable keys
	view     *membership.View // nil before the first
}

// half is what is published of one domain.
type half struct {
	number  uint64 // another one for each state of any domain of the process
	replica causal.Replica
	keys    core.Keys
	seen    causal.Vector
	ready   bool
	silent  []string // while not ready: members that have not answered
	stats   core.Stats
	lags    []core.Lag
	roll    *core.Rollcall // who is counted
	disk    core.DiskState
}

// states numbers the published states of the process.
var states atomic.Uint64

// same reports whether both show the same.
func (h *half) same(o *half) bool {
	return h.replica == o.replica && h.ready == o.ready && h.keys.Same(o.keys) && h.seen.Equal(o.seen) && h.stats == o.stats &&
		h.roll == o.roll && sameDisk(h.disk, o.disk) && slices.Equal(h.lags, o.lags) && slices.Equal(h.silent, o.silent)
}

// sameDisk compares all but the errors, which are the store's and may be of any type.
func sameDisk(a, b core.DiskState) bool {
	none := a.Err == nil && b.Err == nil || a.Err != nil && b.Err != nil
	a.Err, b.Err = nil, nil
	return none && a == b
}

// loading reports whether the rows of the domain are not there yet.
func (h *half) loading() bool { return h.disk.Phase == core.DiskLoading }

// past returns the half after the life in which it was published.
func (h half) past() half {
	h.ready, h.lags = false, nil
	return h
}

// past returns the state after the life in which it was published; nil if nothing was.
func (p *published) past() *published {
	if p == nil {
		return nil
	}
	q := *p
	q.half = q.half.past()
	if q.durable != nil {
		q.durable = new(q.durable.past())
	}
	return &q
}

// allReady reports whether the replica counts, in every domain that can have keys.
func (p *published) allReady() bool {
	return (p.ready || p.choice.all()) && (p.durable == nil || p.durable.ready)
}

// main returns the half that stands for both where there is room for one: the volatile one, if it can have keys.
func (p *published) main() *half {
	if p.choice.all() {
		return p.durable
	}
	return &p.half
}

// stored reports whether the disk takes changes, if there is one.
func (p *published) stored() bool {
	return p.durable == nil || p.durable.disk.Phase == core.DiskWorking
}

// halves yields what is published of each domain.
func (p *published) halves() iter.Seq[*half] {
	return func(yield func(*half) bool) {
		if yield(&p.half) && p.durable != nil {
			yield(p.durable)
		}
	}
}

// of returns the half of a key.
func (p *published) of(key string) *half {
	if p.choice.durable(key) {
		return p.durable
	}
	return &p.half
}

// get returns what an entry holds.
func (p *published) get(key string) told {
	if p == nil {
		return told{}
	}
	h := p.of(key)
	at, _ := h.keys.Get(key)
	return p.ttls.told(key, at.Store, h.seen)
}

// address returns where a member is, for people.
func (p *published) address(id string) string {
	for _, m := range p.view.Members {
		if m.ID == id {
			return m.Address
		}
	}
	return id
}

// names yields the names of the entries that are there and begin with a prefix.
func (p *published) names(prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key, now := range p.entries(prefix, prefix) {
			if !now.gone() && !yield(key) {
				return
			}
		}
	}
}

// entries yields the entries whose names begin with a prefix, in order, from a name on that does. What a domain holds
// under keys of the other one is passed over: Config.Durable was another one. The names alias the state.
func (p *published) entries(prefix, from string) iter.Seq2[string, told] {
	if p == nil {
		return func(func(string, told) bool) {}
	}
	return mergedOf(p.choice, prefix, func(durable bool) iter.Seq2[string, told] {
		h := &p.half
		if durable {
			h = p.durable
		}
		return func(yield func(string, told) bool) {
			for key, at := range h.keys.From(from) {
				if !strings.HasPrefix(key, prefix) || !yield(key, p.ttls.told(key, at.Store, h.seen)) {
					return
				}
			}
		}
	})
}

// turn is what became of an entry from one state to another.
type turn struct{ old, now told }

// turns yields the entries with a prefix that may hold another value in p than in was, in the order of their names. It
// costs as much as what changed. The names alias the states.
func (p *published) turns(was *published, prefix string) iter.Seq2[string, turn] {
	return mergedOf(p.choice, prefix, func(durable bool) iter.Seq2[string, turn] {
		now, old := &p.half, &half{}
		if was != nil {
			old = &was.half
		}
		if durable {
			if now = p.durable; was != nil {
				old = was.durable
			}
		}
		return func(yield func(string, turn) bool) {
			core.Changes(old.keys, now.keys, prefix, func(key string, a, b causal.Store) bool {
				t := turn{p.ttls.told(key, a, old.seen), p.ttls.told(key, b, now.seen)}
				return t.old.same(t.now) || yield(key, t)
			})
		}
	})
}

// mergedOf yields what two sequences, of the volatile and of the durable keys with a prefix, yield in the order of
// their names, each its own keys alone.
func mergedOf[T any](c *choice, prefix string, of func(durable bool) iter.Seq2[string, T]) iter.Seq2[string, T] {
	volatile, durable := c.below(prefix)
	switch {
	case !durable:
		return of(false)
	case !volatile:
		return of(true)
	}
	return func(yield func(string, T) bool) {
		next, stop := iter.Pull2(of(true))
		defer stop()
		key, v, ok := next()
		rest := func(before string) bool {
			for ; ok && (before == "" || key < before); key, v, ok = next() {
				if c.durable(key) && !yield(key, v) {
					return false
				}
			}
			return true
		}
		for k, at := range of(false) {
			if !c.durable(k) && (!rest(k) || !yield(k, at)) {
				return
			}
		}
		rest("")
	}
}

// publish shows readers what the domains hold, if that is another thing than before.
func (a *replica) publish() {
	old := a.l.published.Load()
	if old == nil {
		old = new(published)
	}
	next := published{half: old.half, durable: old.durable, choice: a.l.r.choice, ttls: a.l.ttls, unloaded: a.unloaded, members: len(a.address) + 1, others: a.others, view: a.view}
	news := next.view != old.view || (next.unloaded == nil) != (old.unloaded == nil) || !slices.Equal(next.others, old.others)
	for _, d := range a.domains {
		now := d.half()
		switch {
		case !d.durable && !old.same(&now):
			news, now.number = true, states.Add(1)
			next.half = now
		case d.durable && (old.durable == nil || !old.durable.same(&now)):
			news, now.number = true, states.Add(1)
			next.durable = new(now)
		}
	}
	if !news {
		return
	}
	a.l.published.Store(new(next))
	a.l.r.news.tell()
	if next.allReady() {
		closeOnce(a.l.ready)
	}
}

// closeOnce closes c unless it is closed. Only the actor closes running and ready.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
