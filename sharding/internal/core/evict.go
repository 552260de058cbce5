package core

// Policy selects the running entities that are passivated above a limit.
type Policy uint8

// Policies.
const (
	// LRU evicts the least recently used entity.
	LRU Policy = iota
	// SLRU evicts the least recently used of the entities that were used only once since they
	// started. Entities that were used again are protected, up to 80 % of the limit.
	SLRU
	// LFU compares the entity that leaves the window of fresh ones with the one that SLRU would
	// evict, and evicts the less frequently used of the two. A sketch estimates the frequency, also
	// of entities that are not running.
	LFU
)

// ranks holds the running entities, in the order of eviction.
//
//	LRU    fresh
//	SLRU   fresh (used once) ── used again ──▶ proven (at most 80 % of the limit) ── too many ──▶ fresh
//	LFU    fresh (1 % of the limit) ── old ──▶ tried ── used again ──▶ proven ── too many ──▶ tried
type ranks struct {
	policy               Policy
	limit                int // 0: none
	fresh, tried, proven list
	sketch               sketch
}

func (r *ranks) len() int { return r.fresh.n + r.tried.n + r.proven.n }

// lists returns all lists, in a fixed order.
func (r *ranks) lists() []*list { return []*list{&r.fresh, &r.tried, &r.proven} }

// resize sets the limit.
func (r *ranks) resize(limit int) {
	r.limit = limit
	if r.policy == LFU {
		r.sketch.resize(limit)
	}
	r.settle()
}

// enter adds an entity that starts.
func (r *ranks) enter(e *entity) {
	if r.policy == LFU {
		r.sketch.count(e.id)
	}
	r.fresh.add(e)
	r.settle()
}

// use records that an entity has received a message.
func (r *ranks) use(e *entity) {
	if r.policy == LRU {
		r.fresh.add(e)
		return
	}
	if r.policy == LFU {
		r.sketch.count(e.id)
		if e.in == &r.fresh {
			r.fresh.add(e)
			return
		}
	}
	r.proven.add(e)
	r.settle()
}

// window returns the maximum number of fresh entities with LFU, main that of the others.
func (r *ranks) window() int { return max(1, r.limit/100) }

func (r *ranks) main() int {
	if r.policy == LFU {
		return r.limit - r.window()
	}
	return r.limit
}

// old returns the list in which entities wait to be evicted or used again.
func (r *ranks) old() *list {
	if r.policy == LFU {
		return &r.tried
	}
	return &r.fresh
}

// settle keeps each list within its share. Below the limit, fresh entities above their share are
// moved to tried without a comparison.
func (r *ranks) settle() {
	if r.policy == LRU || r.limit == 0 {
		return
	}
	for r.proven.n > r.main()*4/5 && r.proven.n > 0 {
		r.old().add(r.proven.last)
	}
	for r.policy == LFU && r.fresh.n > r.window() && r.len() <= r.limit {
		r.tried.add(r.fresh.last)
	}
}

// victim returns the entity to passivate, or nil if the limit is not exceeded. It does not remove
// it.
func (r *ranks) victim() *entity {
	if r.limit == 0 || r.len() <= r.limit {
		return nil
	}
	oldest := r.oldest()
	if r.policy != LFU || r.fresh.n <= r.window() {
		return oldest
	}
	candidate := r.fresh.last
	if oldest == nil || r.sketch.times(candidate.id) <= r.sketch.times(oldest.id) {
		return candidate
	}
	r.tried.add(candidate)
	return oldest
}

// oldest returns the eviction candidate outside the fresh ones of LFU, or nil if there is none.
func (r *ranks) oldest() *entity {
	if l := r.old(); l.last != nil {
		return l.last
	}
	return r.proven.last
}
