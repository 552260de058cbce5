package sim

import "time"

// moment is something that happens at a time.
type moment struct {
	at  time.Duration
	seq int
	do  func()
}

func (m *moment) before(o *moment) bool {
	return m.at < o.at || m.at == o.at && m.seq < o.seq
}

// occasion is one of several things of one kind at one time. That it is told apart by its time, and not by
// how many there were before, keeps it the same when other things are left out of a history.
type occasion struct {
	at time.Duration
	n  int // from 1
}

// moments counts occasions.
type moments struct{ last occasion }

func (m *moments) next(now time.Duration) occasion {
	if m.last.n == 0 || m.last.at != now {
		m.last = occasion{at: now}
	}
	m.last.n++
	return m.last
}

// timeline is a binary heap of moments, those of one time in the order in which they were scheduled.
type timeline []moment

func (t *timeline) push(m moment) {
	q := append(*t, m)
	i := len(q) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !m.before(&q[up]) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = m
	*t = q
}

// pop takes the first moment away; there must be one.
func (t *timeline) pop() moment {
	q := *t
	first, last := q[0], q[len(q)-1]
	q[len(q)-1] = moment{}
	q = q[:len(q)-1]
	*t = q
	if len(q) == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(q) {
			break
		}
		if right := down + 1; right < len(q) && q[right].before(&q[down]) {
			down = right
		}
		if !q[down].before(&last) {
			break
		}
		q[i] = q[down]
		i = down
	}
	q[i] = last
	return first
}
