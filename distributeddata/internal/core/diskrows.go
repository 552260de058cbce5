package core

import (
	"maps"
	"slices"
	"time"

	"github.com/concord-go/concord/distributeddata/internal/history"
	"github.com/concord-go/concord/distributeddata/store"
	"github.com/concord-go/concord/internal/causal"
)

// form makes the replica's present state the next moment, and queues the difference from the last
// moment. A difference that fits into one batch is written as one, with the header. A larger one is
// written twice [R47]: first as redo rows, which do not count; then a header makes them count; then
// the rows themselves are written.
func (d *disk) form(p current) {
	next := moment{
		live: d.formed.live, aside: d.formed.aside, batches: d.formed.batches + 1,
		keys: p.Keys(), seen: p.Seen(), sum: p.Sum(), marks: d.formed.marks,
		members: p.members.Digest(), kept: d.kept, next: d.next,
	}
	ops := d.difference(p, &next)
	d.formed = next
	d.barrier.Form()
	d.gathered, d.events, d.dueAt, d.hurry = 0, 0, time.Time{}, false
	whole := append(ops, d.header(next, 0))
	if d.fits(whole) {
		d.queue(whole, true)
		return
	}
	d.stage(ops, next)
}

// difference returns the operations that turn the rows of the last moment into those of the next
// one. It also computes the sum of the next moment's marks.
func (d *disk) difference(p current, next *moment) (ops []store.Op) {
	from := &d.formed
	from.keys.Diff(next.keys, func(key string, a, b history.Held) {
		prefix := rowPrefix(next.live, key)
		causal.Differing(a.Store, b.Store, func(path string, ea causal.Entry, inA bool,
			eb causal.Entry, inB bool) {
			ops = entryOps(ops, prefix, path, ea, inA, eb, inB)
		})
		if !a.SameMarks(b.Store) {
			ops = markOps(ops, prefix, key, a, b, &next.marks)
		}
	})
	for r, n := range next.seen.Differing(from.seen) {
		ops = append(ops, originOp(next.live, r, n[0], p.HashAt(r, n[0])))
	}
	if next.members != from.members {
		ops = append(ops, store.Op{Row: store.Row{Key: rowMembers,
			Value: encodeMemory(*p.members)}})
	}
	return ops
}

// entryOps appends the changes of the atoms of a path. Removals come first, because the parts of a
// large atom have the same keys before and after.
func entryOps(ops []store.Op, prefix []byte, path string, was causal.Entry, inWas bool,
	is causal.Entry, inIs bool) []store.Op {
	if inWas {
		for l := range was.All() {
			if now, ok := leafOf(is, inIs, l.Replica); !ok || now != l {
				ops = leafOps(ops, prefix, path, l, true)
			}
		}
	}
	if inIs {
		for l := range is.All() {
			if old, ok := leafOf(was, inWas, l.Replica); !ok || old != l {
				ops = leafOps(ops, prefix, path, l, false)
			}
		}
	}
	return ops
}

func leafOf(e causal.Entry, in bool, r causal.Replica) (l causal.Leaf, ok bool) {
	if !in {
		return l, false
	}
	return e.Of(r)
}

func markOps(ops []store.Op, prefix []byte, key string, a, b history.Held,
	sum *history.Sum) []store.Op {
	was := maps.Collect(a.Marks())
	for path, m := range b.Marks() {
		old, ok := was[path]
		delete(was, path)
		if ok && old == m {
			continue
		}
		if ok {
			*sum = sum.Minus(markSum(key, path, old))
		}
		path = causal.Clone(path)
		*sum = sum.Plus(markSum(key, path, m))
		ops = append(ops, markOp(prefix, path, m, false))
	}
	for _, path := range slices.Sorted(maps.Keys(was)) {
		*sum = sum.Minus(markSum(key, path, was[path]))
		ops = append(ops, markOp(prefix, path, was[path], true))
	}
	return ops
}

// header returns the header of a moment.
func (d *disk) header(m moment, redo int) store.Op {
	h := header{
		owner: d.cfg.Owner, format: rowFormat, live: m.live, aside: m.aside, redo: uint64(redo),
		batches: m.batches,
		kept:    m.kept, next: m.next, sum: m.sum, marks: m.marks, vector: m.seen.Hash(),
		origins: uint64(m.seen.Len()), members: m.members,
	}
	return store.Op{Row: store.Row{Key: rowHeader, Value: h.encode()}}
}

// Limits of a batch without its header.
const (
	batchRows  = store.MaxRows - 8
	batchBytes = store.MaxBatch - 1<<16
)

func opSize(o store.Op) int { return len(o.Key) + len(o.Value) }

func (d *disk) fits(ops []store.Op) bool {
	size := 0
	for _, o := range ops {
		size += opSize(o)
	}
	return len(ops) <= d.rows() && size <= batchBytes
}

func (d *disk) rows() int {
	if n := d.cfg.batchRows; n > 0 {
		return n
	}
	return batchRows
}

// queue adds a batch.
func (d *disk) queue(ops []store.Op, saves bool) {
	b := diskBatch{ops: ops, saves: saves}
	for _, o := range ops {
		b.size += opSize(o)
	}
	d.batches, d.unwritten = append(d.batches, b), d.unwritten+b.size
}

// pieces divides operations into batches; each operation becomes rowsOf rows and factor times its
// bytes.
func (d *disk) pieces(ops []store.Op, rowsOf int, factor int) (out [][]store.Op) {
	for len(ops) > 0 {
		n, size := 0, 0
		for n < len(ops) && (n == 0 || (n+1)*rowsOf <= d.rows()) &&
			(n == 0 || size+factor*opSize(ops[n]) <= batchBytes) {
			size += factor * opSize(ops[n])
			n++
		}
		out, ops = append(out, ops[:n:n]), ops[n:]
	}
	return out
}

// stage queues a difference that is too large for one batch.
func (d *disk) stage(ops []store.Op, m moment) {
	ops = lastOf(ops)
	for _, some := range d.pieces(ops, 1, 1) {
		redo := make([]store.Op, len(some))
		for i, o := range some {
			redo[i] = redoOp(o)
		}
		d.queue(redo, false)
	}
	d.queue([]store.Op{d.header(m, len(ops))}, true)
	d.settleRedo(ops, m)
}

// lastOf returns the last operation on each row.
func lastOf(ops []store.Op) []store.Op {
	last := make(map[string]int, len(ops))
	for i, o := range ops {
		last[o.Key] = i
	}
	if len(last) == len(ops) {
		return ops
	}
	out := make([]store.Op, 0, len(last))
	for i, o := range ops {
		if last[o.Key] == i {
			out = append(out, o)
		}
	}
	return out
}

// settleRedo queues the final writes of the rows that a header has made count.
func (d *disk) settleRedo(ops []store.Op, m moment) {
	left := len(ops)
	for _, some := range d.pieces(ops, 2, 2) {
		both := make([]store.Op, 0, 2*len(some)+1)
		for _, o := range some {
			both = append(both, o, store.Op{Row: store.Row{Key: rowRedo + o.Key}, Delete: true})
		}
		left -= len(some)
		d.queue(append(both, d.header(m, left)), false)
	}
}

// redoOp returns the redo row for an operation.
func redoOp(o store.Op) store.Op {
	value := make([]byte, 1, 1+len(o.Value))
	if o.Delete {
		value[0] = 1
	}
	return store.Op{Row: store.Row{Key: rowRedo + o.Key, Value: append(value, o.Value...)}}
}

// drop queues the deletion of unneeded rows.
func (d *disk) drop(keys []string) {
	ops := make([]store.Op, len(keys))
	for i, key := range keys {
		ops[i] = store.Op{Row: store.Row{Key: key}, Delete: true}
	}
	for _, some := range d.pieces(ops, 1, 1) {
		d.queue(some, false)
	}
}
