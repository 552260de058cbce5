package core

// Policy says which of the running entities are passivated above a limit.
type Policy uint8

// Policies.
const (
	// LRU: the one that was used longest ago.
	LRU Policy = iota
	// SLRU: of those that were used once since they started, the one that was used longest ago, as long as they are more
	// than a fifth; else of the others.
	SLRU
	// LFU: the one that is used more seldom, of the one that has just become old and the one that is to go by SLRU. What
	// was used often is known by a sketch, also of entities that do not run.
	LFU
)

// ranks are the running entities, in the order in which they are passivated.
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

// lists returns all of them, in a fixed order.
func (r *ranks) lists() []*list { return []*list{&r.fresh, &r.tried, &r.proven} }

// resize takes another limit in.
func (r *ranks) resize(limit int) {
	r.limit = limit
	if r.policy == LFU {
		r.sketch.resize(limit)
	}
	r.settle()
}

// enter puts an entity in that starts.
func (r *ranks) enter(e *entity) {
	if r.policy == LFU {
		r.sketch.count(e.id)
	}
	r.fresh.add(e)
	r.settle()
}

// use notes that an entity has got a message.
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

// window is how many fresh entities there are at most with LFU, main how many others.
func (r *ranks) window() int { return max(1, r.limit/100) }

func (r *ranks) main() int {
	if r.policy == LFU {
		return r.limit - r.window()
	}
	return r.limit
}

// old is where entities wait for their end, or for another use.
func (r *ranks) old() *list {
	if r.policy == LFU {
		return &r.tried
	}
	return &r.fresh
}

// settle keeps each part within its share. Below the limit, what is too much of the fresh ones need not compete.
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

// victim returns the entity to be passivated, nil if no more run than may. It does not take it out.
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

// oldest returns the one that is to go of those that need not compete, nil if there is none.
func (r *ranks) oldest() *entity {
	if l := r.old(); l.last != nil {
		return l.last
	}
	return r.proven.last
}
