package sim

import "time"

// moment is an event at a given time.
type moment struct {
	at  time.Duration
	seq int
	do  func()
}

func (m *moment) before(o *moment) bool {
	return m.at < o.at || m.at == o.at && m.seq < o.seq
}

// occasion is one of several events of one kind at one time. It is identified by its time and not
// by the number of earlier ones, so that it stays the same when other events are removed from a
// history.
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

// timeline is a binary heap of moments, ordered by time and then by order of scheduling.
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

// pop removes and returns the first moment. The timeline must not be empty.
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
