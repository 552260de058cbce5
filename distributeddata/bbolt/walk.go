package bbolt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// walk iterates over the keys of our bucket by reading the file. It yields the readable keys in
// ascending order, and an error for each damaged part of the tree.
type walk struct {
	file  io.ReaderAt
	high  uint64
	stack []frame
	free  [][]byte // reusable buffers of finished pages
	first error    // error of the root
}

// frame is a page on the path to the next key. Its keys must be at least low and below end.
type frame struct {
	page
	next     int
	low, end []byte // nil: no bound
}

// newWalk starts at the page of buckets.
func newWalk(f io.ReaderAt, root, high uint64) *walk {
	w := &walk{file: f, high: high}
	w.first = w.begin(root)
	return w
}

func (w *walk) begin(root uint64) error {
	p, err := readPage(w.file, root, w.high, nil)
	if err != nil {
		return err
	}
	if !p.leaf || p.count != 1 || !p.bucket(0) || !bytes.Equal(p.key(0), bucketName) ||
		len(p.value(0)) < bucketSize {
		return fmt.Errorf("page %d does not hold exactly one bucket, %q", root, bucketName)
	}
	value := p.value(0)
	if id := native.Uint64(value); id != 0 {
		return w.push(id, nil, nil)
	}
	inline, err := parsePage(value[bucketSize:])
	if err != nil || !inline.leaf {
		return errors.Join(errors.New("the bucket in the root page is damaged"), err)
	}
	w.stack = append(w.stack, frame{page: inline})
	return nil
}

// push descends into a page.
func (w *walk) push(id uint64, low, end []byte) error {
	if len(w.stack) >= maxDepth {
		return fmt.Errorf("page %d: deeper than %d", id, maxDepth)
	}
	var buffer []byte
	if n := len(w.free); n > 0 {
		buffer, w.free = w.free[n-1], w.free[:n-1]
	}
	p, err := readPage(w.file, id, w.high, buffer)
	if err != nil {
		return err
	}
	if p.count > 0 && (low != nil && bytes.Compare(p.key(0), low) < 0 || end != nil &&
		bytes.Compare(p.key(p.count-1), end) >= 0) {
		return fmt.Errorf("page %d holds keys of another page", id)
	}
	w.stack = append(w.stack, frame{page: p, low: low, end: end})
	return nil
}

// next returns the next key and its value, io.EOF at the end, or an error that says why keys are
// missing here. The slices are valid until the next call.
func (w *walk) next() (key, value []byte, err error) {
	if err := w.first; err != nil {
		w.first = nil
		return nil, nil, err
	}
	for len(w.stack) > 0 {
		top := &w.stack[len(w.stack)-1]
		i := top.next
		if i == top.count {
			w.free = append(w.free, top.raw)
			w.stack = w.stack[:len(w.stack)-1]
			continue
		}
		top.next++
		if top.leaf {
			if top.bucket(i) {
				return nil, nil, fmt.Errorf("key %q is a bucket", top.key(i))
			}
			return top.key(i), top.value(i), nil
		}
		end := top.end
		if i+1 < top.count {
			end = top.key(i + 1)
		}
		if err := w.push(top.child(i), top.key(i), end); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, io.EOF
}
