package distributeddata

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/concord-go/concord/distributeddata/internal/core"
	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/internal/causal"
	"github.com/concord-go/concord/internal/membership"
)

// replicatorView is the state that readers see: immutable, and of one instant. All methods that
// readers use may be called on nil, which holds nothing.
type replicatorView struct {
	domainView               // of the volatile keys
	durable     *domainView  // nil without Config.Durable
	durableKeys *durableKeys // of the durable keys
	ttls        *lifetimes
	members     int              // number in view, including this one
	unloaded    error            // why the rows of the durable keys cannot be used
	others      []string         // addresses of members that list other durable keys
	expiry      []string         // addresses of members with other times to live
	view        *membership.View // nil before the first view
	stopped     error            // why the replica serves no more, before its incarnation has ended
}

// domainView is the published state of one domain.
type domainView struct {
	number  uint64 // unique to each state of any domain of the process
	replica causal.Replica
	keys    history.Keys
	seen    causal.Vector
	ready   bool
	silent  []string // while not ready: the members that have not answered
	stats   core.Stats
	lags    []core.Lag
	quorum  *core.QuorumStatus // the counted members
	disk    core.DiskState
}

// states generates the numbers of the published states of the process.
var states atomic.Uint64

// same reports whether both views show the same state.
func (h *domainView) same(o *domainView) bool {
	return h.replica == o.replica && h.ready == o.ready && h.keys.Same(o.keys) &&
		h.seen.Equal(o.seen) && h.stats == o.stats &&
		h.quorum == o.quorum && sameDisk(h.disk, o.disk) && slices.Equal(h.lags, o.lags) &&
		slices.Equal(h.silent, o.silent)
}

// sameDisk compares all fields except the errors, which are the store's and may be of any type.
func sameDisk(a, b core.DiskState) bool {
	none := a.Err == nil && b.Err == nil || a.Err != nil && b.Err != nil
	a.Err, b.Err = nil, nil
	return none && a == b
}

// loading reports whether the rows of the domain have not been loaded yet.
func (h *domainView) loading() bool { return h.disk.Phase == core.DiskLoading }

// past returns the view as shown after the incarnation in which it was published.
func (h domainView) past() domainView {
	h.ready, h.lags = false, nil
	return h
}

// past returns the state as shown after the incarnation in which it was published; nil for nil.
func (p *replicatorView) past() *replicatorView {
	if p == nil {
		return nil
	}
	q := *p
	q.domainView = q.domainView.past()
	if q.durable != nil {
		q.durable = new(q.durable.past())
	}
	return &q
}

// allReady reports whether the replica counts in every domain that can have keys.
func (p *replicatorView) allReady() bool {
	return (p.ready || p.durableKeys.all()) && (p.durable == nil || p.durable.ready)
}

// main returns the view that represents both domains where there is room for only one. It is the
// volatile one if there can be volatile keys.
func (p *replicatorView) main() *domainView {
	if p.durableKeys.all() {
		return p.durable
	}
	return &p.domainView
}

// stored reports whether the disk accepts changes; it is true without a disk.
func (p *replicatorView) stored() bool {
	return p.durable == nil || p.durable.disk.Phase == core.DiskWorking
}

// domainViews yields the published state of each domain.
func (p *replicatorView) domainViews() iter.Seq[*domainView] {
	return func(yield func(*domainView) bool) {
		if yield(&p.domainView) && p.durable != nil {
			yield(p.durable)
		}
	}
}

// of returns the view that key belongs to.
func (p *replicatorView) of(key string) *domainView {
	if p.durableKeys.durable(key) {
		return p.durable
	}
	return &p.domainView
}

// get returns the content of an entry.
func (p *replicatorView) get(key string) entryView {
	if p == nil {
		return entryView{}
	}
	h := p.of(key)
	at, _ := h.keys.Get(key)
	return p.ttls.view(key, at, h.seen)
}

// address returns the address of a member, or its id if it is not in view.
func (p *replicatorView) address(id string) string {
	for _, m := range p.view.Members {
		if m.ID == id {
			return m.Address
		}
	}
	return id
}

// names yields the names of the existing entries that begin with a prefix.
func (p *replicatorView) names(prefix string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key, now := range p.entries(prefix, prefix) {
			if !now.gone() && !yield(key) {
				return
			}
		}
	}
}

// entries yields the entries whose names begin with prefix, in order, beginning at the name from,
// which must begin with prefix. It skips entries that a domain holds under keys of the other one
// because Config.Durable has changed. The names alias the state.
func (p *replicatorView) entries(prefix, from string) iter.Seq2[string, entryView] {
	if p == nil {
		return func(func(string, entryView) bool) {}
	}
	return mergedOf(p.durableKeys, prefix, func(durable bool) iter.Seq2[string, entryView] {
		h := &p.domainView
		if durable {
			h = p.durable
		}
		return func(yield func(string, entryView) bool) {
			for key, at := range h.keys.From(from) {
				if !strings.HasPrefix(key, prefix) || !yield(key, p.ttls.view(key, at, h.seen)) {
					return
				}
			}
		}
	})
}

// entryChange is the change of an entry between two states.
type entryChange struct{ old, now entryView }

// changes yields the entries with a prefix whose values may differ between was and p, in the order
// of their names. Its cost is proportional to the changes. The names alias the states.
func (p *replicatorView) changes(was *replicatorView, prefix string) iter.Seq2[string,
	entryChange] {
	return mergedOf(p.durableKeys, prefix, func(durable bool) iter.Seq2[string, entryChange] {
		now, old := &p.domainView, &domainView{}
		if was != nil {
			old = &was.domainView
		}
		if durable {
			if now = p.durable; was != nil {
				old = was.durable
			}
		}
		return func(yield func(string, entryChange) bool) {
			history.Changes(old.keys, now.keys, prefix, func(key string, a, b history.Held) bool {
				t := entryChange{p.ttls.view(key, a, old.seen), p.ttls.view(key, b, now.seen)}
				return t.old.same(t.now) || yield(key, t)
			})
		}
	})
}

// mergedOf merges two sequences, of the volatile and of the durable keys with a prefix, in the
// order of their names. It yields only those keys of each sequence that belong to its domain.
func mergedOf[T any](c *durableKeys, prefix string, of func(durable bool) iter.Seq2[string,
	T]) iter.Seq2[string, T] {
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

// publish makes the state of the domains visible to readers, if it has changed.
func (a *replica) publish() {
	old := a.l.published.Load()
	if old == nil {
		old = new(replicatorView)
	}
	next := replicatorView{domainView: old.domainView, durable: old.durable,
		durableKeys: a.l.r.durableKeys, ttls: a.l.ttls,
		unloaded: a.unloaded, members: len(a.address) + 1, others: a.others,
		expiry: a.otherExpiry, view: a.view}
	news := next.view != old.view || (next.unloaded == nil) != (old.unloaded == nil) ||
		!slices.Equal(next.others, old.others) || !slices.Equal(next.expiry, old.expiry)
	for _, d := range a.domains {
		now := d.domainView()
		d.note(now.stats)
		switch {
		case !d.durable && !old.same(&now):
			news, now.number = true, states.Add(1)
			next.domainView = now
		case d.durable && (old.durable == nil || !old.durable.same(&now)):
			news, now.number = true, states.Add(1)
			next.durable = new(now)
		}
	}
	if !news {
		return
	}
	a.l.published.Store(new(next))
	if next.allReady() {
		closeOnce(a.l.ready)
	}
}

// closeOnce closes c unless it is closed. Only the actor closes the channels running and ready.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
