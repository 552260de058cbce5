package waiting

import queue "container/heap"

// deadlines is a heap of calls by deadline. Calls that have ended stay until they reach the top, or
// until they are half of all.
type deadlines[L comparable, T any] []*call[L, T]

func (d deadlines[L, T]) Len() int      { return len(d) }
func (d deadlines[L, T]) Swap(i, j int) { d[i], d[j] = d[j], d[i] }
func (d *deadlines[L, T]) Push(x any)   { *d = append(*d, x.(*call[L, T])) }

func (d deadlines[L, T]) Less(i, j int) bool {
	if !d[i].Deadline.Equal(d[j].Deadline) {
		return d[i].Deadline.Before(d[j].Deadline)
	}
	return d[i].ID < d[j].ID
}

func (d *deadlines[L, T]) Pop() any {
	last := len(*d) - 1
	w := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return w
}

// first returns the call with the earliest deadline that has not ended, or nil.
func (d *deadlines[L, T]) first() *call[L, T] {
	for len(*d) > 0 && (*d)[0].ended {
		queue.Pop(d)
	}
	if len(*d) == 0 {
		return nil
	}
	return (*d)[0]
}
